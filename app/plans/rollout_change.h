// SPDX-License-Identifier: Apache-2.0
// The change of a rollout: its text, read against the inventory, and its policy. Internal to app/.
#pragma once

#include "inventory/model/rollout_policy.h"
#include "inventory/parse/change.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "lifecycle/runs/run.h"

#include <string>
#include <vector>

namespace muster::app {

struct ReadChange {
  inventory::Change change;
  std::string text;
  std::string file;                ///< where its relative paths start
  std::vector<std::string> notes;  ///< what it warns of
};
/// Of a command or a run. Errors: InvalidInput (neither a change nor a driver, or both; what does
/// not fit: each diagnostic), NotFound (the driver, a node)
Result<ReadChange> changeOf(const lifecycle::RolloutParams& asked,
                            const lifecycle::EffectiveCluster& live, const std::string& nodes);
/// What the order says instead of the change.
inventory::RolloutPolicy policyOf(inventory::RolloutPolicy policy,
                                  const lifecycle::RolloutParams& asked);

}  // namespace muster::app
