// SPDX-License-Identifier: Apache-2.0
// Whether a rollout may be begun, gone on with or undone: what the inventory asks for, and the run
// that carries it out.
#pragma once

#include "app/site/session.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/rollout/record.h"
#include "lifecycle/runs/run.h"

#include <optional>
#include <string>

namespace muster::app {

/// What this process does by itself nobody can approve, and it cannot wait for a window. Errors:
/// Denied (the inventory would ask, or it takes more nodes out of work than one run may)
Result<void> requireNobodyAsked(Session& session, const lifecycle::FactSet& facts,
                                const lifecycle::Plan& plan);
/// The same of the nodes that are not through yet, by the frozen plan.
Result<void> requireNobodyAskedForRest(Session& session, const lifecycle::RolloutRecord& book);

/// By the inventory as it is in its file. Errors: Conflict (it may not be undone now: why)
Result<void> mayRollBack(const Options& options, lifecycle::Store& store,
                         const lifecycle::RolloutRecord& record);
/// The open run that carries a rollout out, if there is one.
Result<std::optional<lifecycle::Run>> runOfRollout(const Options& options, const std::string& id);
/// Of a halted rollout of a run: its wave's gate counts as passed when the run goes on. `by`: who
/// says so. Errors: InvalidInput (it is no rollout), Conflict (it is not halted, or no gate of it
/// has failed)
Result<void> acceptGate(const Options& options, const lifecycle::Run& run,
                        const std::string& reason, const std::string& by);

}  // namespace muster::app
