// SPDX-License-Identifier: Apache-2.0
// notify: receivers outside, looked at and tried. docs/notifications.md
#pragma once

#include "app/site/options.h"

#include <string>
#include <vector>

namespace muster::app {

struct ReceiverState {
  std::string name, url, format;
  bool is_told = false;     ///< a monitor has told it something, or tried to
  std::size_t waiting = 0;  ///< events and findings that a webhook has not taken yet
  std::string trouble;  ///< its secret cannot be used, or why it takes nothing, as the monitor says
};

/// Those of the inventory, by name; reads their secrets. Errors: the inventory's, the store's
Result<std::vector<ReceiverState>> notificationReceivers(const Options& options);

/// Sends one message that says that it is a trial, now and from here. Errors: NotFound (no such
/// receiver), InvalidInput (its key), those of the receiver and of the way to it
Result<void> tryReceiver(const Options& options, const std::string& name);

}  // namespace muster::app
