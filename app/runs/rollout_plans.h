// SPDX-License-Identifier: Apache-2.0
// The rollout of a run before it is under way: its change, what is written down of it, and which
// runs there are of it. Internal to app/.
#pragma once

#include "app/runs/run_rounds.h"
#include "lifecycle/rollout/freeze.h"

namespace muster::app {

/// Of a process without an EffectiveCluster.
Error cannotRollOut();
/// What would be written down, by the inventory, its limits and the facts of now.
Result<lifecycle::RolloutDraft> draftOf(const RunWork& work, const lifecycle::Run& run,
                                        const lifecycle::FactSet& facts);
/// Whether it was written down.
Result<bool> isListed(lifecycle::Store& store, const std::string& id);
/// The changes of queued and waiting rollouts are made known to the cluster before a controller
/// starts with it, as it has to be; no node is changed by it. One that does not fit is left out:
/// its run says so when it is planned.
Result<void> layRolloutRuns(lifecycle::EffectiveCluster& live, lifecycle::RunStore& runs,
                            lifecycle::Store& store);
/// Open runs of this rollout, but for `but`.
Result<std::vector<lifecycle::Run>> runsOfRollout(lifecycle::RunStore& runs, const std::string& id,
                                                  const std::string& but = {});

}  // namespace muster::app
