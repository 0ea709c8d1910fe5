// SPDX-License-Identifier: Apache-2.0
// What a plan does to the site, in numbers: which nodes leave work, of how many, in which pool and
// failure domain; what is wiped and reset; how long it takes at least. app/plans/plan_impact.h
// computes it.
#pragma once

#include "lifecycle/rollout/window.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace muster::lifecycle {

/// One pool, rack, scalable unit or leaf switch that loses nodes.
struct DomainImpact {
  Domain domain;
  std::size_t taken_out = 0;    ///< nodes that the plan drains
  std::size_t already_out = 0;  ///< others of the domain that are drained now
  std::size_t size = 0;         ///< nodes of the domain
  std::size_t limit = 0;        ///< that may be out at once; `size`: no limit
  bool exceeds() const { return taken_out + already_out > limit; }
};

struct PlanImpact {
  std::size_t actions = 0, blocked = 0, subjects = 0;
  std::vector<NodeName> taken_out, wiped, reset;  ///< in the order of the plan; what is blocked is
                                                  ///< not among them
  std::size_t run_limit = 0;                      ///< nodes that may be taken out; 0: no limit
  std::vector<DomainImpact> domains;              ///< those that lose nodes; pools first
  /// Of the subjects that were looked at: "firmware (denied)" → nodes, what could not be read.
  std::map<std::string, std::vector<NodeName>> unread;
  /// The longest chain of actions that need each other, by their usual durations.
  std::chrono::seconds at_least{0};
};

}  // namespace muster::lifecycle
