// SPDX-License-Identifier: Apache-2.0
// The controller that stays: `muster monitor`. It works in runs: a run ends when another command
// requests the state folder, when the inventory has to be read again, or when another host serves
// the site; the next run begins with the inventory as it then is. docs/adr/0015
#pragma once

#include "app/plans/progress_listener.h"
#include "app/site/options.h"

#include <string>

namespace muster::app {

class MonitorListener : public ProgressListener {
 public:
  /// A run that could not begin, or an inventory that could not be read: it is tried again.
  virtual void onError(const Error& error) = 0;
  /// Twice a second while a run works, on its thread. Behind a notice or an error it may wait for
  /// long (for a command that holds the state folder, for another host) before the next.
  virtual void onPoll() {}
  /// A signal ends the process, which says so to nobody else; this may end it in its own way.
  virtual void onExit() {}
};

/// Does not end but by an error of its first run.
/// Errors: Conflict (a monitor of this state folder runs already), those of the first run
Error runMonitor(const Options& options, MonitorListener& listener);

/// The inventory is read again at once. May be called by a signal's handler.
void requestReload();

}  // namespace muster::app
