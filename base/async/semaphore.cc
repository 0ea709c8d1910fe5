// SPDX-License-Identifier: Apache-2.0
#include "base/async/semaphore.h"

#include "base/async/waiter.h"

#include <exception>

namespace muster::async {

Task<void> Semaphore::acquire() {
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

void Semaphore::release() {
  while (!waiters_.empty()) {
    const auto next = waiters_.front().lock();
    waiters_.pop_front();
    if (next) return next->wake();
  }
  ++free_;
}

}  // namespace muster::async
