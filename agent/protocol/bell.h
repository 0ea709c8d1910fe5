// Wakes the coroutines that wait for something to change. All on one control thread.
#pragma once

#include "base/clock.h"
#include "base/deadline.h"
#include "base/task.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <set>

namespace muster::agent {

/// A waiter remembers `count()` before it looks at the state, then waits for a later one: no ring is missed.
class Bell {
 public:
  std::uint64_t count() const { return state_->count; }
  void ring() {
    ++state_->count;
    for (auto* timer : state_->waiting) timer->cancel();
  }
  /// True when it rang after `seen`, false when `limit` passed before.
  Task<bool> waitFor(Clock& clock, std::uint64_t seen, std::chrono::milliseconds limit) {
    auto state = state_;
    if (state->count != seen) co_return true;
    auto rung = withDeadline(clock, limit, "bell", wait(state, seen));
    auto outcome = co_await std::move(rung);
    co_return outcome.has_value();
  }

 private:
  struct State {
    std::uint64_t count = 0;
    std::set<asio::steady_timer*> waiting;
  };
  struct Entry {
    std::shared_ptr<State> state;
    asio::steady_timer* timer;
    ~Entry() { state->waiting.erase(timer); }
  };

  static Async<void> wait(std::shared_ptr<State> state, std::uint64_t seen) {
    auto executor = co_await asio::this_coro::executor;
    if (state->count != seen) co_return Result<void>();
    asio::steady_timer timer(executor, asio::steady_timer::time_point::max());
    state->waiting.insert(&timer);
    Entry entry{state, &timer};
    boost::system::error_code ignored;
    auto rung = timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_await std::move(rung);
    co_return Result<void>();
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace muster::agent
