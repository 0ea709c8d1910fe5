// SPDX-License-Identifier: Apache-2.0
// Time as a seam: virtual time in tests, the real clock elsewhere.
#pragma once

#include "base/async/task.h"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>

namespace muster {

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// RFC 3339 in UTC with milliseconds.
std::string toString(WallTime time);
Result<WallTime> parseWallTime(std::string_view text);

/// Ends the wait that it was given to. It must outlive that wait.
class WakeToken {
 public:
  void wake() {
    if (timer_) timer_->cancel();
  }
  /// For clocks: the timer that wake() cancels, while this lives.
  class Armed {
   public:
    Armed(WakeToken* token, asio::steady_timer& timer) : token_(token) {
      if (token_) token_->timer_ = &timer;
    }
    Armed(const Armed&) = delete;
    ~Armed() {
      if (token_) token_->timer_ = nullptr;
    }

   private:
    WakeToken* token_;
  };

 private:
  asio::steady_timer* timer_ = nullptr;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime now() const = 0;
  /// Never goes back; for durations.
  virtual std::chrono::steady_clock::time_point steady() const = 0;
  /// Waits. Answers whether the time has passed; false: it was cancelled, or the token woke it.
  virtual Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) = 0;
  Task<bool> waitFor(std::chrono::milliseconds duration) { return waitFor(duration, nullptr); }
  /// The same for whoever cannot go on when cancelled: throws operation_aborted then.
  Task<void> sleep(std::chrono::milliseconds duration);
};

class SystemClock final : public Clock {
 public:
  WallTime now() const override;
  std::chrono::steady_clock::time_point steady() const override;
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) override;
};

/// Virtual time for tests: sleepers wake in order as `advance` (or `runUntilIdle` of the test
/// harness) moves it on.
class FakeClock final : public Clock {
 public:
  FakeClock();
  ~FakeClock() override;
  WallTime now() const override;
  std::chrono::steady_clock::time_point steady() const override;
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) override;
  void advance(std::chrono::milliseconds duration);
  /// Moves straight to the next sleeper. False when nobody sleeps.
  bool advanceToNext();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster
