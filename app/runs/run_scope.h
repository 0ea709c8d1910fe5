// SPDX-License-Identifier: Apache-2.0
// Which nodes a run is about, and which were agreed to. Pure but for declaredIntents. Internal to
// app/.
#pragma once

#include "lifecycle/model/plan.h"
#include "lifecycle/runs/run.h"
#include "lifecycle/store/store.h"

#include <set>
#include <string>
#include <vector>

namespace muster::app {

/// The names of a hostlist; none, where it is empty.
std::set<std::string> namesOf(const std::string& hostlist);
/// The hostlist and these nodes.
std::string with(const std::string& hostlist, const std::vector<NodeName>& nodes);
/// The hostlist and the nodes on which the plan acts.
std::string withSubjects(const std::string& hostlist, const lifecycle::Plan& plan);
bool isWithin(const std::vector<NodeName>& nodes, const std::string& agreed);

/// Open intents that a command or a run has begun on what the policy is about, by action id; the
/// monitor's are its own.
Result<std::set<std::string>> declaredIntents(lifecycle::Store& store,
                                              const lifecycle::Policy& policy);
/// Actions on the run's nodes that have begun and not ended, by id.
Result<std::set<std::string>> openActionsOf(lifecycle::Store& store, const lifecycle::Run& run);
/// Whether the plan does anything now: where all is blocked nobody is asked.
bool hasSomethingToAsk(const lifecycle::PlanImpact& impact);
void addProblems(lifecycle::Run& run, const std::vector<std::string>& problems);
/// The newest plan of a run.
void notePlan(lifecycle::Run& run, const lifecycle::Plan& plan, const lifecycle::PlanImpact& impact,
              WallTime now);

}  // namespace muster::app
