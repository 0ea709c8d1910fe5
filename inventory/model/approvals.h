// SPDX-License-Identifier: Apache-2.0
// Who must agree to a run besides its author, and when a pool may lose nodes. docs/runs.md
#pragma once

#include <string>
#include <vector>

namespace muster::inventory {

/// How much a run disturbs a node, from the mildest on; each includes those after it.
enum class Disturbance { Any, Drain, Reset, Wipe };

/// A run that disturbs at least so many nodes needs so many approvals. Of several rules that hold
/// the largest number counts.
struct ApprovalRule {
  Disturbance disruption = Disturbance::Drain;
  int min_nodes = 1;               ///< of all pools that the rule names together
  std::vector<std::string> pools;  ///< empty: all nodes, also those without a pool
  int approvals = 1;               ///< by others than the author
};

enum class Weekday { Sun, Mon, Tue, Wed, Thu, Fri, Sat };

/// When a run may begin to take nodes of a pool out of work.
struct MaintenanceWindow {
  std::vector<Weekday> days;      ///< on which it opens, in its zone; empty: every day
  int from_minute = 0;            ///< of the day, in its zone
  int minutes = 0;                ///< how long it is open, by elapsed time
  std::string time_zone = "UTC";  ///< of the IANA database
};

}  // namespace muster::inventory
