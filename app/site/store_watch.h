// SPDX-License-Identifier: Apache-2.0
// Ends the process when its store, or a lock of the state folder, was deleted or replaced under it.
#pragma once

#include "app/site/state_lock.h"
#include "lifecycle/store/store.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>

namespace muster::app {

enum {
  kLostStore = 5
};  ///< the exit status of a process whose store or lock was deleted or replaced under it

/// Every write asks by itself and fails; this is for a process that writes seldom, or tries again
/// for ever (keep). What it believes comes from a store that nobody else can read, so nothing of it
/// must get out: it stops at once, as on a signal, and says why.
class StoreWatch {
 public:
  /// `store` and `lock` are borrowed and outlive this object. Looks from the first run of `context`
  /// on.
  StoreWatch(boost::asio::io_context& context, const lifecycle::Store& store,
             const StateLock& lock);

 private:
  void look();
  [[noreturn]] static void end(const std::string& why);

  boost::asio::steady_timer timer_;
  const lifecycle::Store& store_;
  const StateLock& lock_;
};

}  // namespace muster::app
