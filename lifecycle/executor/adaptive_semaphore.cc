// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/executor/adaptive_semaphore.h"

namespace muster::lifecycle {

Task<void> AdaptiveSemaphore::acquire(std::size_t rank) {
  const auto executor = co_await asio::this_coro::executor;
  backlog_ = &asio::use_service<Backlog>(asio::query(executor, asio::execution::context));
  if (under_way_ == 0) limit_.resumed(clock_.steady());
  if (waiting_.empty() && under_way_ < limit()) {
    ++under_way_;
    if (shows_backlog_) backlog_->waited({});
    co_return;
  }
  const auto asked = clock_.steady();
  auto admitted = std::make_shared<async::Event>();
  const auto waiting = waiting_.emplace(rank, admitted);
  std::exception_ptr cancelled;
  try {
    co_await admitted->wait();
  } catch (...) {
    cancelled = std::current_exception();
  }
  if (!cancelled) {
    if (shows_backlog_) backlog_->waited(clock_.steady() - asked);
    co_return;
  }
  if (admitted->isSet())
    abandon();  // it had been admitted
  else
    waiting_.erase(waiting);
  std::rethrow_exception(cancelled);
}

void AdaptiveSemaphore::release(bool good) {
  limit_.ended(clock_.steady(), good, !waiting_.empty(), backlog_ && backlog_->isBehind());
  abandon();
}

void AdaptiveSemaphore::abandon() {
  --under_way_;
  admit();
}

void AdaptiveSemaphore::admit() {
  while (!waiting_.empty() && under_way_ < limit()) {
    ++under_way_;
    waiting_.extract(waiting_.begin()).mapped()->set();
  }
}

}  // namespace muster::lifecycle
