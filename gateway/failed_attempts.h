// SPDX-License-Identifier: Apache-2.0
// Who has failed to enroll lately. Each try costs the store a read and perhaps a finding, and
// anybody may try: after some failures an address is refused before anything is looked up.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace muster::gateway {

class FailedAttempts {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kPerAddress =
      30;  ///< in one interval: a machine that boots with a wrong token tries a few times
  static constexpr std::size_t kAddresses = 4096;  ///< that are remembered
  static constexpr std::size_t kInAll =
      20'000;  ///< in one interval, whoever it was: beyond the table nobody is told apart
  static constexpr std::chrono::seconds kInterval{60};

  bool mayTry(const std::string& address, Time now) {
    beginInterval(now);
    if (failed_ >= kInAll) return false;
    const auto found = by_address_.find(address);
    return found == by_address_.end() || found->second < kPerAddress;
  }
  void failed(const std::string& address, Time now) {
    beginInterval(now);
    ++failed_;
    if (by_address_.size() < kAddresses || by_address_.contains(address)) ++by_address_[address];
  }

 private:
  void beginInterval(Time now) {
    if (now - began_ < kInterval) return;
    began_ = now;
    failed_ = 0;
    by_address_.clear();
  }

  Time began_{};
  std::size_t failed_ = 0;
  std::unordered_map<std::string, std::size_t> by_address_;
};

}  // namespace muster::gateway
