// SPDX-License-Identifier: Apache-2.0
// What a plan does to the site, in numbers: which nodes leave work, of how many, in which pool and
// failure domain; what is wiped and reset; how long it takes at least.
#pragma once

#include "inventory/model/fwd.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/model/plan_impact.h"

#include <string>
#include <vector>

namespace muster::app {

using lifecycle::DomainImpact;
using lifecycle::PlanImpact;

/// Pure. `drained`: facts that tell which nodes are drained already.
PlanImpact impactOf(const inventory::Cluster& cluster, const lifecycle::FactSet& facts,
                    const lifecycle::Plan& plan, const lifecycle::LeafSwitchesOf& leaves);

/// Nodes of those domains that the plan was not asked to look at: their places in the pool are to
/// be read again before the limits mean anything. Pure; in the order of the inventory.
std::vector<NodeName> uncheckedNeighbours(const inventory::Cluster& cluster,
                                          const lifecycle::Policy& policy, const PlanImpact& impact,
                                          const lifecycle::LeafSwitchesOf& leaves);

/// Why the plan must not be carried out in one go, one line a domain; empty: it may.
/// `taken_out_before`: other nodes that the same run has taken out already.
std::vector<std::string> exceededLimits(const PlanImpact& impact, std::size_t taken_out_before = 0);
/// Of work in waves, each of which is within the limits of its domains: whether it is within
/// limits.per_run. Errors: Denied (it is not)
Result<void> requireWithinRunLimit(const PlanImpact& impact);
/// Errors: Denied (a limit is exceeded; names them and points to a rollout)
Result<void> requireWithinLimits(const PlanImpact& impact, std::size_t taken_out_before = 0);

}  // namespace muster::app
