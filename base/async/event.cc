// SPDX-License-Identifier: Apache-2.0
#include "base/async/event.h"

#include "base/async/waiter.h"

#include <utility>

namespace muster::async {

void Event::set() {
  set_ = true;
  for (auto& weak : std::exchange(waiters_, {}))
    if (auto waiter = weak.lock()) waiter->wake();
}

Task<void> Event::wait() {
  if (set_) co_return;
  auto waiter = std::make_shared<Waiter>(co_await asio::this_coro::executor);
  waiters_.push_back(waiter);
  co_await waiter->sleep();
}

}  // namespace muster::async
