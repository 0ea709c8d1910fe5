// SPDX-License-Identifier: Apache-2.0
// The rollout of a run before it is under way: its change, its plan, and which runs there are of
// it. Internal to app/.
#pragma once

#include "app/runs/run_rounds.h"
#include "lifecycle/rollout/freeze.h"

namespace muster::app {

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
/// Whether the cluster that this process has read knows the change. Errors: InvalidInput (the
/// change does not fit the inventory: each diagnostic)
Result<bool> isChangeKnown(const RunWork& work, const lifecycle::Run& run);
/// What the whole rollout would do, or its undoing. Errors: those of draftWithPlan, mayRollBack
Result<lifecycle::Plan> planRollout(const RunWork& work, const lifecycle::Run& run,
                                    const lifecycle::FactSet& facts);
/// The nodes that its undoing is about.
Result<lifecycle::Policy> policyForRollback(const RunWork& work, const lifecycle::Run& run);
/// Of a rollout that nobody works on: a person's word ends it. Of another kind: nothing.
Result<void> abortRollout(RunWork& work, const lifecycle::Run& run, const std::string& by);
/// Open runs of this rollout, but for `but`.
Result<std::vector<lifecycle::Run>> runsOfRollout(lifecycle::RunStore& runs, const std::string& id,
                                                  const std::string& but = {});

}  // namespace muster::app
