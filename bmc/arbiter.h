// SPDX-License-Identifier: Apache-2.0
// Arbiter: stands in front of one BMC. One writing operation at a time, few reads at once, nobody
// during a BMC reset, a bounded rate of requests, a deadline on everything. Lock-out protection
// lives where the login is (redfish_session.h). Used on the control thread only.
#pragma once

#include "base/async/deadline.h"
#include "base/clock.h"
#include "bmc/bmc.h"

#include <memory>

namespace muster::bmc {

inline constexpr std::size_t kMaxConcurrentReads = 2;  ///< per BMC; more makes slow BMCs slower
inline constexpr std::chrono::milliseconds kRequestGap{
    50};  ///< 20 requests a second in the long run
inline constexpr int kRequestBurst = 40;

/// A bounded number of places; waiters are served in order. Leaving happens by destroying the
/// permit.
class AsyncSemaphore {
 public:
  class Permit;
  explicit AsyncSemaphore(std::size_t places);
  Task<Permit> enter();

 private:
  struct Waiter;
  struct State;
  std::shared_ptr<State> state_;
};

class AsyncSemaphore::Permit {
 public:
  Permit() = default;
  Permit(Permit&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Permit& operator=(Permit&& other) noexcept;
  ~Permit() { leave(); }

 private:
  friend class AsyncSemaphore;
  explicit Permit(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void leave();
  std::shared_ptr<State> state_;
};

/// Spaces requests out: at most kRequestBurst at once, then one every kRequestGap.
class RateLimiter {
 public:
  explicit RateLimiter(Clock& clock) : clock_(clock) {}
  Task<void> next();

 private:
  Clock& clock_;
  std::chrono::steady_clock::time_point next_slot_{};
};

/// Wraps a driver. Every operation of the Bmc passes through here.
std::unique_ptr<Bmc> arbitrate(std::unique_ptr<Bmc> driver, Clock& clock);

}  // namespace muster::bmc
