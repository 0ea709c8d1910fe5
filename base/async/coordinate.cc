// SPDX-License-Identifier: Apache-2.0
#include "base/async/coordinate.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>

namespace muster::async {

class Waiter {
 public:
  explicit Waiter(const asio::any_io_executor& executor)
      : timer_(executor, asio::steady_timer::time_point::max()) {}
  void wake() {
    woken_ = true;
    timer_.cancel();
  }
  bool woken() const { return woken_; }
  Task<void> sleep() {
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (!woken_) throw boost::system::system_error(asio::error::operation_aborted);
  }

 private:
  asio::steady_timer timer_;
  bool woken_ = false;
};

void Signal::set() {
  set_ = true;
  for (auto& weak : std::exchange(waiters_, {}))
    if (auto waiter = weak.lock()) waiter->wake();
}

Task<void> Signal::wait() {
  if (set_) co_return;
  auto waiter = std::make_shared<Waiter>(co_await asio::this_coro::executor);
  waiters_.push_back(waiter);
  co_await waiter->sleep();
}

Task<void> Places::take() {
  if (free_ > 0) {
    --free_;
    co_return;
  }
  auto waiter = std::make_shared<Waiter>(co_await asio::this_coro::executor);
  waiters_.push_back(waiter);
  std::exception_ptr cancelled;
  try {
    co_await waiter->sleep();
  } catch (...) {
    cancelled = std::current_exception();
  }
  if (!cancelled) co_return;
  std::erase_if(waiters_, [&waiter](const auto& weak) { return weak.lock() == waiter; });
  std::rethrow_exception(cancelled);
}

void Places::release() {
  while (!waiters_.empty()) {
    const auto next = waiters_.front().lock();
    waiters_.pop_front();
    if (next) return next->wake();
  }
  ++free_;
}

Task<void> awaitAll(std::vector<Task<void>> tasks) {
  if (tasks.empty()) co_return;
  auto executor = co_await asio::this_coro::executor;
  using Operation = decltype(asio::co_spawn(executor, std::move(tasks.front()), asio::deferred));
  std::vector<Operation> operations;
  operations.reserve(tasks.size());
  for (auto& task : tasks)
    operations.push_back(asio::co_spawn(executor, std::move(task), asio::deferred));
  auto group = asio::experimental::make_parallel_group(std::move(operations));
  auto [order, exceptions] =
      co_await group.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  for (auto& exception : exceptions)
    if (exception) std::rethrow_exception(exception);
}

}  // namespace muster::async
