// SPDX-License-Identifier: Apache-2.0
// Places for operations of one kind, as many as an AdaptiveLimit finds good. Control thread only.
#pragma once

#include "base/async/event.h"
#include "base/clock.h"
#include "lifecycle/executor/adaptive_limit.h"
#include "lifecycle/executor/backlog.h"

#include <map>

namespace muster::lifecycle {

class AdaptiveSemaphore {
 public:
  AdaptiveSemaphore(Clock& clock, AdaptiveLimit::Bounds bounds)
      : clock_(clock), shows_backlog_(bounds.shows_backlog), limit_(bounds) {}
  AdaptiveSemaphore(const AdaptiveSemaphore&) = delete;

  /// The lowest rank goes first; among equals who came first.
  Task<void> acquire(std::size_t rank = 0);
  /// `good`: the operation succeeded, as far as the other side's load goes: a refusal that is an
  /// answer is good.
  void release(bool good);
  /// An operation that was called off says nothing.
  void abandon();

  std::size_t limit() const { return limit_.limit(); }
  std::size_t underWay() const { return under_way_; }

 private:
  void admit();

  Clock& clock_;
  const bool shows_backlog_;
  Backlog* backlog_ = nullptr;  ///< of the io_context that asked last
  AdaptiveLimit limit_;
  std::size_t under_way_ = 0;
  std::multimap<std::size_t, std::shared_ptr<async::Event>> waiting_;  ///< by rank
};

/// Runs `work` in a place.
template <class T>
Async<T> withPermit(AdaptiveSemaphore& semaphore, Async<T> work) {
  co_await semaphore.acquire();
  std::exception_ptr thrown;
  try {
    auto result = co_await std::move(work);
    semaphore.release(result.has_value() || !result.error().canRetry());
    co_return result;
  } catch (...) {
    thrown = std::current_exception();
  }
  semaphore.abandon();
  std::rethrow_exception(thrown);
}

}  // namespace muster::lifecycle
