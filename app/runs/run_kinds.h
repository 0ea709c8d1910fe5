// SPDX-License-Identifier: Apache-2.0
// What the kinds of runs have of their own before they begin: which nodes are looked at, and the
// plan. Internal to app/.
#pragma once

#include "app/runs/run_rounds.h"

namespace muster::app {

/// Errors: NotFound (a node), InvalidInput (an erasure of several)
Result<lifecycle::Policy> policyFor(const RunWork& work, const lifecycle::Run& run);
/// What the run would do now. Errors: also why it must not do it
Async<lifecycle::Plan> planOf(RunWork& work, lifecycle::Run run, lifecycle::FactSet facts,
                              lifecycle::Policy policy);
/// Whether nodes are to be looked at for its plan.
bool isAboutNodes(const lifecycle::Run& run);

/// What its plan counts as made from.
std::string digestFor(const RunWork& work, const lifecycle::Run& run);
/// Whether its plan is void because the inventory is another one by now. A rollout that has begun
/// goes on: what is edited outranks its change (lifecycle/rollout/overlay.h).
bool isOfAnotherInventory(const RunWork& work, const lifecycle::Run& run);

}  // namespace muster::app
