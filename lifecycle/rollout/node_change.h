// SPDX-License-Identifier: Apache-2.0
// One node of a rollout: changed, or back to what it was. What is decided about it is committed
// before anything happens to it; its own work is the engine's.
#pragma once

#include "lifecycle/rollout/pool_watch.h"

namespace muster::lifecycle {

class NodeChange {
 public:
  NodeChange(RolloutCourse& course, PoolWatch& pools) : course_(course), pools_(pools) {}

  /// Nullopt: nothing was done to it; it waits for another turn. Errors: of the store, of the
  /// engine
  Async<std::optional<NodeProgress>> change(NodeName node);
  Async<std::optional<NodeProgress>> revert(NodeName node);
  /// What it did not use of the rollout's wipe grant.
  Result<void> revokeWipe(const NodeName& node);

 private:
  /// Makes the plan of a node that nothing was done to yet. Answers what it is then: Started,
  /// Skipped, or Waiting as before.
  Async<NodeProgress> prepare(NodeName node, Plan& plan);
  /// Whether the ceilings still let it go, now that it was looked at; if not, it counts as working.
  bool reserveRoom(const NodeName& node, const FactSet& facts);
  /// Looks at the node until its pool has answered too; nullopt: it is to wait (an order, or the
  /// pool stays away).
  Async<std::optional<FactSet>> observeWithPool(NodeName node);
  /// Plan and apply until nothing is left. Answers what failed; empty: nothing.
  Async<std::string> converge(NodeName node, std::optional<Plan> plan);
  /// Whether all that is left of the node is a person's: who drained it while it was worked on.
  Async<std::string> heldByAPerson(NodeName node);
  Result<Plan> planFor(const NodeName& node, const FactSet& facts) const;
  Result<void> grantWipe(const Plan& plan, const NodeName& node);
  /// Facts and findings of facets that the node's other declaration names and this one does not:
  /// nobody looks at those any more.
  Result<void> forgetOtherFacets(const NodeName& node);
  std::set<FacetName> facetsOf(const NodeName& node, const FactSet& facts) const;
  Async<Measures> measure(NodeName node, WallTime since);

  RolloutCourse& course_;
  PoolWatch& pools_;
};

}  // namespace muster::lifecycle
