// SPDX-License-Identifier: Apache-2.0
// Wakes the coroutines that wait for something to change. All on one control thread.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace muster::async {

/// A waiter remembers `count()` before it looks at the state, then waits for a later one: no ring
/// is missed.
class Bell {
 public:
  std::uint64_t count() const { return state_->count; }
  void ring() {
    ++state_->count;
    for (auto* alarm : state_->waiting) alarm->ring();
  }
  /// True when it rang after `seen`, false when `limit` passed before. Throws operation_aborted
  /// when the waiter is cancelled.
  Task<bool> waitFor(Clock& clock, std::uint64_t seen, std::chrono::milliseconds limit) {
    const auto state = state_;
    if (state->count != seen) co_return true;
    Alarm alarm;
    const Entry entry(*state, alarm);
    const bool passed = co_await clock.rest(limit, &alarm);
    if (state->count != seen) co_return true;
    if (!passed) throw boost::system::system_error(asio::error::operation_aborted);
    co_return false;
  }

 private:
  struct State {
    std::uint64_t count = 0;
    std::vector<Alarm*> waiting;
  };
  class Entry {
   public:
    Entry(State& state, Alarm& alarm) : state_(state), alarm_(&alarm) {
      state_.waiting.push_back(alarm_);
    }
    Entry(const Entry&) = delete;
    ~Entry() {
      state_.waiting.erase(std::find(state_.waiting.begin(), state_.waiting.end(), alarm_));
    }

   private:
    State& state_;
    Alarm* alarm_;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace muster::async
