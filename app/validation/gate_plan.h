// SPDX-License-Identifier: Apache-2.0
// Gates that a person asks for again: which, and that the plan is about nothing else. Pure.
#pragma once

#include "inventory/model/cluster.h"
#include "lifecycle/model/plan.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::app {

bool isGate(const FacetName& facet);
std::string nameOfGate(const FacetName& facet);
/// Whether the node's profile asks for this gate.
bool hasGate(const inventory::Cluster& cluster, const NodeName& node, const FacetName& gate);
/// The facets of these gates; none named: all that the nodes' profiles have. Errors: NotFound (a
/// gate), InvalidInput (the profiles have none)
Result<std::set<FacetName>> gatesOf(const inventory::Cluster& cluster,
                                    const std::vector<NodeName>& nodes,
                                    const std::vector<std::string>& wanted);
/// Whether the profiles of these nodes have all of these gates, before a run is asked for. Errors:
/// InvalidInput
Result<void> requireGates(const inventory::Cluster& cluster, const std::vector<NodeName>& nodes,
                          const std::vector<std::string>& wanted);
/// Only gates, and what goes with them: leaving and joining the pool, and the certificate. Errors:
/// Conflict (anything else is apply's)
Result<void> onlyGates(const lifecycle::Plan& plan);

using GatesByNode = std::map<lifecycle::Subject, std::vector<FacetName>>;
/// Gates that were last seen before `since`: they are to run again.
GatesByNode gatesSeenBefore(const lifecycle::FactSet& facts, const std::vector<NodeName>& nodes,
                            const std::set<FacetName>& gates, WallTime since);
/// As if they had never run.
lifecycle::FactSet without(lifecycle::FactSet facts, const GatesByNode& gates);

}  // namespace muster::app
