// SPDX-License-Identifier: Apache-2.0
// Wakes the coroutines that wait for a change of some state, as often as it changes (event.h is for
// what happens once). All on one control thread.
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

/// A waiter remembers `version()` before it reads the state, then waits for a later one: no change
/// is missed.
class ChangeNotifier {
 public:
  std::uint64_t version() const { return state_->version; }
  void notify() {
    ++state_->version;
    for (auto* token : state_->waiting) token->wake();
  }
  /// True when it was notified after `seen`, false when `limit` passed before. Throws
  /// operation_aborted when the waiter is cancelled.
  Task<bool> waitFor(Clock& clock, std::uint64_t seen, std::chrono::milliseconds limit) {
    const auto state = state_;
    if (state->version != seen) co_return true;
    WakeToken token;
    const Entry entry(*state, token);
    const bool passed = co_await clock.waitFor(limit, &token);
    if (state->version != seen) co_return true;
    if (!passed) throw boost::system::system_error(asio::error::operation_aborted);
    co_return false;
  }

 private:
  struct State {
    std::uint64_t version = 0;
    std::vector<WakeToken*> waiting;
  };
  class Entry {
   public:
    Entry(State& state, WakeToken& token) : state_(state), token_(&token) {
      state_.waiting.push_back(token_);
    }
    Entry(const Entry&) = delete;
    ~Entry() {
      state_.waiting.erase(std::find(state_.waiting.begin(), state_.waiting.end(), token_));
    }

   private:
    State& state_;
    WakeToken* token_;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace muster::async
