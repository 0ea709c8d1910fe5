// SPDX-License-Identifier: Apache-2.0
// One coroutine that waits: a timer that never expires. Waking it is cancelling the timer, and a
// flag tells that from a real cancellation (Ctrl-C), which throws operation_aborted. Internal to
// base/async/; on one control thread.
#pragma once

#include "base/async/task.h"

#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

namespace muster::async {

class Waiter {
 public:
  explicit Waiter(const asio::any_io_executor& executor)
      : timer_(executor, asio::steady_timer::time_point::max()) {}
  void wake() {
    woken_ = true;
    timer_.cancel();
  }
  Task<void> sleep() {
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (!woken_) throw boost::system::system_error(asio::error::operation_aborted);
  }

 private:
  asio::steady_timer timer_;
  bool woken_ = false;
};

}  // namespace muster::async
