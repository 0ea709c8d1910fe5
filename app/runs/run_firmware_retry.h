// SPDX-License-Identifier: Apache-2.0
// The run that installs firmware again whose installation has failed for good. It is an apply of
// the nodes on which something had failed before the run was asked for: while it runs, what says so
// (firmware-failed.COMPONENT, and what an abandoned update has left) is lifted, and where it rests
// or ends before a node has begun, that is put back. What fails in the run itself is never lifted
// by it, so nothing is flashed a third time. docs/adr/0373. Internal to app/.
#pragma once

#include "app/runs/run_rounds.h"
#include "app/validation/gate_plan.h"

namespace muster::app {

/// What says of these nodes that an installation has failed, seen before `before`: to be left out
/// of the facts that a retry is planned from.
GatesByNode failuresSeenBefore(const lifecycle::FactSet& facts, const std::vector<NodeName>& nodes,
                               WallTime before);

/// Of the nodes on which something has failed; where that is none: of all that were named. Errors:
/// NotFound (a node), those of the store
Result<lifecycle::Policy> policyForRetry(const RunWork& work, const lifecycle::Run& run);
/// As if nothing had failed; empty where nothing has. Errors: those of the store
Result<lifecycle::Plan> planRetry(const RunWork& work, const lifecycle::Run& run,
                                  const lifecycle::FactSet& facts, const lifecycle::Policy& policy);
/// Before the plan is carried out. Kept in the row first. Of a run of another kind: nothing.
Result<void> liftFailures(const RunWork& work, const lifecycle::Run& run);
/// Where the run rests or ends: puts back what was lifted of nodes whose firmware nobody has begun
/// to install since. Answers a line for each of them. Of a run of another kind: nothing.
Result<std::vector<std::string>> leaveRetry(const RunWork& work, const lifecycle::Run& run);

}  // namespace muster::app
