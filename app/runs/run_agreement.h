// SPDX-License-Identifier: Apache-2.0
// What people have agreed to, and that a run does this and no more. Internal to app/.
#pragma once

#include "app/runs/run_rows.h"
#include "inventory/model/cluster.h"

namespace muster::app {

/// Of a planned run: whom it needs.
Result<void> decide(RunRows& rows, const inventory::Cluster& cluster, const std::string& id);
/// Whether what people have agreed with still counts, and who has asked for the run. What does not
/// is struck out, with why; where too little is left the run needs approval again, and one whose
/// author's token was revoked needs somebody else's. docs/adr/0351, 0366
Result<bool> isStillAgreed(RunRows& rows, lifecycle::Store& store, const lifecycle::Run& run);
/// The newest plan is agreed to: later rounds may disturb its nodes.
void noteAgreement(lifecycle::Run& run);
/// Whether a later round is within the limits, within what was agreed to, and in the window of its
/// pools. If not, the run is failed, people are asked again, or it waits.
Result<bool> mayGoOn(RunRows& rows, const inventory::Cluster& cluster, const std::string& id,
                     const lifecycle::Plan& plan, const lifecycle::PlanImpact& impact);
/// Whether the nodes of the run's newest plan may be taken out of work at this time; if not, the
/// run waits for its window, or ends where there will be none.
Result<bool> isWindowOpen(RunRows& rows, const inventory::Cluster& cluster, const std::string& id);
/// Of a run that waits: it is outdated where the inventory has changed, and approved again when its
/// window opens. Answers it where it may begin.
/// `is_outdated`: RunKindRules::isOutdated.
Result<std::optional<lifecycle::Run>> endWaiting(RunRows& rows, lifecycle::Run run,
                                                 bool is_outdated);

}  // namespace muster::app
