// SPDX-License-Identifier: Apache-2.0
// A counting semaphore for coroutines. All on one control thread; a cancelled waiter throws
// operation_aborted and holds no permit.
#pragma once

#include "base/async/task.h"

#include <cstddef>
#include <deque>
#include <memory>

namespace muster::async {

class Waiter;

/// First come, first served. `release` is called by hand: a permit is not passed on by a coroutine
/// that is being destroyed together with its io_context.
class Semaphore {
 public:
  explicit Semaphore(std::size_t permits) : free_(permits) {}
  Task<void> acquire();
  void release();

 private:
  std::size_t free_;
  std::deque<std::weak_ptr<Waiter>> waiters_;
};

}  // namespace muster::async
