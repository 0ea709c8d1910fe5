// SPDX-License-Identifier: Apache-2.0
// The erasure of a run: what the node is asked for, and only while the run may. Until its plan is
// agreed to nothing is written that any other plan could take for a wish; where the run ends or
// rests, what has not begun is taken back. Internal to app/.
#pragma once

#include "app/nodes/erase_plan.h"
#include "app/runs/run_rounds.h"

namespace muster::app {

/// Errors: InvalidInput (it is not about one node, or says not why), those of planErasure
Result<PlannedErasure> planErasure(const RunWork& work, const lifecycle::Run& run,
                                   const lifecycle::FactSet& facts);
using ApplyOfRun = std::function<Async<lifecycle::ApplyReport>(lifecycle::Run, lifecycle::Plan)>;
/// Of a run that is agreed to and begun, to its end. However often it is begun, the node is told
/// once: the request has one id, and the journal knows its task.
Async<void> eraseDisks(RunWork& work, RunRows& rows, lifecycle::Run run, ApplyOfRun apply);
/// Before the run rests or ends: what the node has not begun is taken back. Answers lines for
/// people. Of a run of another kind: nothing.
Result<std::vector<std::string>> leaveErasure(RunWork& work, const lifecycle::Run& run);
/// Of whoever works on the site while nobody serves it: what runs have asked for before their
/// process was killed, and their nodes have not begun, is taken back, so that no other plan carries
/// it out, whatever was ordered of the run meanwhile. The run asks again when it goes on. `forget`
/// is told each node of which something was taken back.
Result<void> restErasures(lifecycle::RunStore& runs, lifecycle::Store& store, WallTime now,
                          const std::function<void(const NodeName&)>& forget);

}  // namespace muster::app
