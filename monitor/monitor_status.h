// SPDX-License-Identifier: Apache-2.0
// Who watches the nodes: what the last look of a keep left in the store, for status and rollouts.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "lifecycle/store/store.h"

#include <string>
#include <string_view>

namespace muster::monitor {

/// The store's value that each look of a keep writes: when, by whom, what it could not see.
inline constexpr std::string_view kKeepHeartbeat = "keep.heartbeat";

/// What `muster status` says of keep: when it looked last, and which breakers are open.
struct KeepStatus {
  bool running = false;  ///< it has looked within the last minute
  std::string text;      ///< one line or more, for people; empty: there never was a keep
  bool tripped = false;
  std::string holder;  ///< who looked last
};
Result<KeepStatus> keepStatus(lifecycle::Store& store, WallTime now);

/// Who watches the nodes that a rollout does not touch, while it runs in this process.
struct Watchers {
  bool several_controllers =
      false;  ///< one holds the lease of the site, which is this process; the others wait for it
  bool own_store = true;  ///< SQLite in the state folder: no keep elsewhere can know the site
  std::string
      this_holder;  ///< as KeepStatus::holder of a keep of this host and state folder would be
};
/// What is so, in one line for people.
std::string watchDuringRollout(const Watchers& watchers, const KeepStatus& kept);

}  // namespace muster::monitor
