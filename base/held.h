// SPDX-License-Identifier: Apache-2.0
// Held: a member whose type the owner's header only names.
//
// The owner's special members stand in its .cc file, so only they and those who look into the value
// need its type. As C++26's std::indirect, but never without a value: a move takes the content, not
// the place.
#pragma once

#include <memory>
#include <utility>

namespace muster {

/// Behaves as the value itself: copies are deep, const goes through, there always is one.
template <class T>
class Held {
 public:
  Held() : value_(std::make_unique<T>()) {}
  Held(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Held(const Held& other) : value_(std::make_unique<T>(*other)) {}
  Held(Held&& other) : value_(std::make_unique<T>(std::move(*other))) {}
  Held& operator=(T value) {
    *value_ = std::move(value);
    return *this;
  }
  Held& operator=(const Held& other) {
    *value_ = *other;
    return *this;
  }
  Held& operator=(Held&& other) {
    if (this != &other) *value_ = std::move(*other);
    return *this;
  }
  ~Held() = default;

  const T& operator*() const { return *value_; }
  T& operator*() { return *value_; }
  const T* operator->() const { return value_.get(); }
  T* operator->() { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace muster
