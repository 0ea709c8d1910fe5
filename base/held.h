// SPDX-License-Identifier: Apache-2.0
// Held, HeldOptional: members whose types the owner's header only names.
//
// The value lies in a place of its own, with the functions that copy and destroy it, so the owner
// can be made, copied and destroyed by files that know nothing of the value's type. Only who looks
// into it includes its header. std::indirect of C++26 asks for the type in each of these.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <utility>

namespace muster {

/// At most one T. Copies are deep; what was moved from is empty. Const goes through.
template <class T>
class HeldOptional {
 public:
  HeldOptional() = default;
  HeldOptional(std::nullopt_t) {}
  // By the name of the type alone: to copy one must not need to know what T is made of.
  template <std::same_as<T> Value>
  HeldOptional(Value value) {
    emplace(std::move(value));
  }
  HeldOptional(const HeldOptional& other)
      : value_(other.value_ ? other.copy_(other.value_.get()) : nullptr,
               other.value_.get_deleter()),
        copy_(other.copy_) {}
  HeldOptional(HeldOptional&&) noexcept = default;
  HeldOptional& operator=(const HeldOptional& other) {
    HeldOptional copy(other);
    value_ = std::move(copy.value_);
    copy_ = copy.copy_;
    return *this;
  }
  HeldOptional& operator=(HeldOptional&&) noexcept = default;
  ~HeldOptional() = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  const T& operator*() const { return *value_; }
  T& operator*() { return *value_; }
  const T* operator->() const { return value_.get(); }
  T* operator->() { return value_.get(); }

  T& emplace(T value = T()) {
    value_ = Place(new T(std::move(value)), [](T* held) { delete held; });
    copy_ = [](const T* held) { return new T(*held); };
    return *value_;
  }
  void reset() { value_.reset(); }

 private:
  using Place = std::unique_ptr<T, void (*)(T*)>;
  Place value_{nullptr, nullptr};
  T* (*copy_)(const T*) = nullptr;
};

/// Exactly one T, as it is by default until it is changed. References to it hold until its owner is
/// assigned to, or until the first change.
template <class T>
class Held {
 public:
  Held() = default;
  template <std::same_as<T> Value>
  Held(Value value) : value_(std::move(value)) {}

  const T& operator*() const {
    static const T unchanged{};
    return value_ ? *value_ : unchanged;
  }
  T& operator*() { return value_ ? *value_ : value_.emplace(); }
  const T* operator->() const { return &**this; }
  T* operator->() { return &**this; }
  operator const T&() const { return **this; }

 private:
  HeldOptional<T> value_;
};

}  // namespace muster
