// SPDX-License-Identifier: Apache-2.0
// Collects the goals of the subjects that a plan has to look at, and drops those that are quiet.
#pragma once

#include "lifecycle/planner/goal_graph.h"

namespace muster::lifecycle {

/// Who asked whose facts for its goals, by rank. Only what a Replanner has to know.
using ReadsByRank = std::vector<std::pair<Index, FactSet::Reads>>;

class GoalCollector {
 public:
  /// `reads`: null where nobody has to know them.
  GoalCollector(const PlanInputs& inputs, GoalGraph& graph, ReadsByRank* reads)
      : inputs_(inputs), graph_(graph), reads_(reads) {}

  /// Goals of the ranks that are not quiet, and of those that their needs lead to: a subject that
  /// the policy leaves out still says whether what it must bring is there. Errors: NotFound (the
  /// policy names a subject that is not in the inventory), Internal
  Result<void> collect(const std::vector<Index>& ranks);

 private:
  struct Listed {
    Goal goal;
    Phase* phase = nullptr;
  };
  Result<void> checkPolicy() const;
  Result<std::vector<Listed>> goalsOf(Index rank);
  bool isQuiet(Index rank, const std::vector<Listed>& goals);
  bool needsAreQuiet(const std::vector<Listed>& goals, const Subject& subject) const;
  Result<void> keep(Index rank, std::vector<Listed> goals);
  void number();
  void chooseClusterGoals();

  const PlanInputs& inputs_;
  GoalGraph& graph_;
  ReadsByRank* reads_;
  std::set<FacetName> cluster_goals_;
  std::vector<Index> by_name_;  ///< scratch of isQuiet: goals ordered by facet
};

}  // namespace muster::lifecycle
