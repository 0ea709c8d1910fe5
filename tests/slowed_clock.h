// SPDX-License-Identifier: Apache-2.0
// The time of another clock, in a place that is slow.
#pragma once

#include "base/limits.h"

namespace muster::test {

class SlowedClock final : public SlowClock {
 public:
  SlowedClock(Clock& clock, double slowness) : clock_(clock), slowness_(slowness) {}
  WallTime now() const override { return clock_.now(); }
  std::chrono::steady_clock::time_point steady() const override { return clock_.steady(); }
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) override {
    return clock_.waitFor(duration, token);
  }
  double slowness() const override { return slowness_; }
  void set(double slowness) { slowness_ = slowness; }

 private:
  Clock& clock_;
  double slowness_;
};

}  // namespace muster::test
