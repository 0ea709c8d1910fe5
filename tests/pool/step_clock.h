// SPDX-License-Identifier: Apache-2.0
// StepClock: time that moves only when somebody sleeps, and then at once. For tests with real I/O
// and pretended waits.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"

#include <vector>

namespace muster::pool::test {

class StepClock final : public Clock {
 public:
  std::vector<std::chrono::milliseconds> sleeps;

  WallTime now() const override {
    return WallTime(std::chrono::seconds(1795266000)) + passed_ + set_by_;
  }
  std::chrono::steady_clock::time_point steady() const override {
    return std::chrono::steady_clock::time_point(std::chrono::hours(1)) + passed_;
  }
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken*) override {
    sleeps.push_back(duration);
    passed_ += duration;
    co_return true;
  }
  void advance(std::chrono::milliseconds duration) { passed_ += duration; }
  /// Somebody sets the wall clock.
  void setForward(std::chrono::milliseconds by) { set_by_ += by; }

 private:
  std::chrono::milliseconds passed_{0}, set_by_{0};
};

}  // namespace muster::pool::test
