// SPDX-License-Identifier: Apache-2.0
// What costs to make, kept for a moment: several windows that show the same, and one that asks too
// often, cost what one costs.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace muster::api {

/// On one thread alone. At most a fifth of it goes into making the same thing again and again.
template <class T>
class Kept {
 public:
  using Steady = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLeastLife{2};
  static constexpr int kCostFactor = 4;

  /// Null: it has to be made.
  const T* find(const std::string& key) const {
    return value_ && key_ == key && Steady::now() < good_until_ ? &*value_ : nullptr;
  }
  /// `began`: when making it began.
  const T& keep(std::string key, Steady::time_point began, T value) {
    key_ = std::move(key);
    value_ = std::move(value);
    const auto ended = Steady::now();
    good_until_ = ended + std::max<Steady::duration>(kLeastLife, kCostFactor * (ended - began));
    return *value_;
  }

 private:
  std::string key_;
  std::optional<T> value_;
  Steady::time_point good_until_{};
};

}  // namespace muster::api
