// SPDX-License-Identifier: Apache-2.0
// An event that happens once. All on one control thread; a cancelled waiter throws
// operation_aborted.
#pragma once

#include "base/async/task.h"

#include <memory>
#include <vector>

namespace muster::async {

class Waiter;

/// Whoever waits is woken when it is set; who comes later does not wait.
class Event {
 public:
  bool isSet() const { return set_; }
  void set();
  Task<void> wait();

 private:
  bool set_ = false;
  std::vector<std::weak_ptr<Waiter>>
      waiters_;  ///< a waiter belongs to the coroutine that waits, and dies with it
};

}  // namespace muster::async
