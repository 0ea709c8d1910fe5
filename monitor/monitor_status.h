// SPDX-License-Identifier: Apache-2.0
// Who watches the nodes: what the last look of a monitor left in the store, for status and
// rollouts.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "lifecycle/store/store.h"

#include <string>
#include <string_view>

namespace muster::monitor {

/// The store's value that each look of a monitor writes: when, by whom, what it could not see.
inline constexpr std::string_view kMonitorHeartbeat = "monitor.heartbeat";
/// Of a monitor that ends in order: nobody is told for minutes that it still runs.
Result<void> markMonitorEnded(lifecycle::Store& store, WallTime now);

/// What `muster status` says of the monitor: when it looked last, and which breakers are open.
struct MonitorStatus {
  bool running = false;  ///< it has looked within the last minute
  std::string text;      ///< one line or more, for people; empty: there never was a monitor
  bool tripped = false;
  std::string holder;  ///< who looked last
};
Result<MonitorStatus> monitorStatus(lifecycle::Store& store, WallTime now);

/// Who watches the nodes that a rollout does not touch, while it runs in this process.
struct Watchers {
  bool several_controllers =
      false;  ///< one holds the lease of the site, which is this process; the others wait for it
  bool own_store = true;    ///< SQLite in the state folder: no monitor elsewhere can know the site
  std::string this_holder;  ///< as MonitorStatus::holder of a monitor of this host and state folder
                            ///< would be
};
/// What is so, in one line for people.
std::string watchDuringRollout(const Watchers& watchers, const MonitorStatus& kept);

}  // namespace muster::monitor
