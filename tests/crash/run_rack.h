// SPDX-License-Identifier: Apache-2.0
// Runs on a simulated rack: what the process that serves a site does, the executor and the monitor
// on one engine, with the real phases.
#pragma once

#include "app/runs/run_executor.h"
#include "tests/crash/simulated_rack.h"
#include "tests/fakes/memory_runs.h"

namespace muster::test {

enum class Beside { Nothing, Monitor };

/// One process that serves the site: it lives until `until` holds, and fails if that is not so
/// within hours.
LifeEnd serve(SimulatedRack& rack, lifecycle::Store& store, std::shared_ptr<MemoryRuns::Data> rows,
              Death death, std::function<bool()> until, Beside beside = Beside::Nothing);

}  // namespace muster::test
