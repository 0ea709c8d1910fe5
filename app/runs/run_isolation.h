// SPDX-License-Identifier: Apache-2.0
// The isolation of a run: tests between nodes that nobody works with. Its rounds are
// validate/isolate's, with a log of their own; the run brings who asked and agreed, holds the nodes
// meanwhile, and goes on whatever dies. Internal to app/.
#pragma once

#include "app/runs/run_rounds.h"

namespace muster::app {

/// One action that disturbs nothing for each node that is to be tested. Errors: Conflict (a named
/// node must not be disturbed), InvalidInput (fewer than two nodes)
Result<lifecycle::Plan> planIsolation(const RunWork& work, const lifecycle::Run& run,
                                      const lifecycle::FactSet& facts);
/// Of a run that is agreed to and begun, to its end.
Async<void> isolateForRun(RunWork& work, RunRows& rows, lifecycle::Run run);
/// Of a cancelled run: what was done so far is forgotten. Of another kind: nothing.
Result<void> leaveIsolation(const RunWork& work, const lifecycle::Run& run);

}  // namespace muster::app
