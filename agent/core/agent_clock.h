// SPDX-License-Identifier: Apache-2.0
// The agent's clock: real time, and limits that are as long as the controller says that this place
// is slow. Only in a twin it says anything.
#pragma once

#include "base/io/http.h"
#include "base/limits.h"

#include <atomic>
#include <memory>

namespace muster::agent {

class AgentClock final : public SlowClock {
 public:
  WallTime now() const override { return clock_.now(); }
  std::chrono::steady_clock::time_point steady() const override { return clock_.steady(); }
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) override {
    return clock_.waitFor(duration, token);
  }
  double slowness() const override { return slowness_; }
  /// Kept within 1 and kMaxReportedSlowness.
  void heed(double slowness);

 private:
  SystemClock clock_;
  std::atomic<double> slowness_ = 1;
};

/// `client`; what its answers say of the place is told to the clock, which must outlive it. An
/// answer that says nothing changes nothing while it is an error, and else means that nothing is
/// slow.
std::unique_ptr<io::HttpClient> heedSlowness(std::unique_ptr<io::HttpClient> client,
                                             AgentClock& clock);

}  // namespace muster::agent
