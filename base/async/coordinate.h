// SPDX-License-Identifier: Apache-2.0
// Waiting of coroutines on one control thread: a signal that is set once, and a bounded number of
// places.
//
// A waiter is a timer that never expires; waking it is cancelling it, and a flag tells that from a
// real cancellation (Ctrl-C), which throws operation_aborted. Nothing here may be used from two
// threads.
#pragma once

#include "base/async/task.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

namespace muster::async {

class Waiter;

class Signal {
 public:
  bool isSet() const { return set_; }
  void set();
  Task<void> wait();

 private:
  bool set_ = false;
  std::vector<std::weak_ptr<Waiter>>
      waiters_;  ///< a waiter belongs to the coroutine that waits, and dies with it
};

/// First come, first served. `release` is called by hand: a place is not given on by a coroutine
/// that is being destroyed together with its io_context.
class Places {
 public:
  explicit Places(std::size_t count) : free_(count) {}
  Task<void> take();
  void release();

 private:
  std::size_t free_;
  std::deque<std::weak_ptr<Waiter>> waiters_;
};

/// Runs all of them at once and awaits them all; then throws the first exception that one of them
/// threw, if any.
Task<void> awaitAll(std::vector<Task<void>> tasks);

}  // namespace muster::async
