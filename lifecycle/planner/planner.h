// SPDX-License-Identifier: Apache-2.0
// The planner's graph. Internal to lifecycle/; makePlan (plan.h) and Replanner (replanner.h) are
// the ways in.
//
// Steps: collect goals → link needs → order (cycles are found here) → decide what is unmet or
// re-made → guards (wipe, pool) and what they block, until nothing changes → emit actions, ordered
// again because drain and join add edges.
//
// A subject is quiet when all its goals are met and need only each other or the cluster. Nothing it
// has can act, block or close a circle, so it is dropped as soon as that is seen, unless a goal of
// another subject needs it. Most of a fleet is quiet most of the time: a hundred thousand nodes
// need no four million vertices.
#pragma once

#include "lifecycle/planner/goal_collector.h"
#include "lifecycle/planner/goal_graph.h"

namespace muster::lifecycle {

class Planner {
 public:
  Planner(const inventory::Cluster& cluster, const Roster& roster, const FactSet& facts,
          const Policy& policy, const Phases& phases)
      : inputs_{cluster, roster, facts, policy, phases} {}
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// Plans these ranks (the cluster always), and looks at what their goals need.
  Result<Plan> make(const std::vector<Index>& ranks);
  void recordReads(ReadsByRank& reads) { reads_ = &reads; }

  // After make:
  /// Ranks that were not quiet, or that one of those needs; ascending.
  std::vector<Index> kept() const;
  /// Pairs of ranks, neither the cluster, of which the first needs the second.
  std::vector<std::pair<Index, Index>> links() const;
  /// Facts that the plan has because of a kept subject.
  std::map<FacetRef, std::string> factsUsedBy(Index rank) const;
  /// Whether a goal of the cluster needs a node.
  bool clusterNeedsNodes() const;

 private:
  void decide();
  void computeWaits();
  void block();
  void guardWipe(Vertex& vertex) const;
  bool guardPool(SubjectState& state);
  bool blockDisturbing(const SubjectState& state, const std::string& why);
  bool propagate();

  PlanInputs inputs_;
  GoalGraph graph_{inputs_};
  ReadsByRank* reads_ = nullptr;
};

}  // namespace muster::lifecycle
