// SPDX-License-Identifier: Apache-2.0
// The graph of goals: subjects, their goals, what these need, and an order in which each comes
// after what it needs. Filled by GoalCollector, decided by Planner, printed as a plan by
// PlanEmitter.
#pragma once

#include "lifecycle/planner/roster.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace muster::lifecycle {

/// What a plan is made of; everything outlives it.
struct PlanInputs {
  const inventory::Cluster& cluster;
  const Roster& roster;
  const FactSet& facts;
  const Policy& policy;
  const Phases& phases;

  bool isInterrupted(const FacetRef& facet, const Phase& phase) const {
    return policy.interrupted.contains(facet) && phase.resumesAfterMet();
  }
  bool isSelected(const Subject& subject) const {
    return subject.isCluster() || policy.only.empty() || policy.only.contains(subject);
  }
};

/// One goal in the graph.
struct Vertex {
  Goal goal;
  Phase* phase = nullptr;
  Index subject = 0;
  const Fact* fact = nullptr;
  std::vector<Index> needs;
  std::vector<Index>
      waits;  ///< actions that must be done first: needs, seen through goals that are met
  bool after_pool = false;  ///< needs somebody's place in a pool, so no join waits for it
  bool acts = false;        ///< an action of the plan
  Index remade_by = kNone;  ///< the wiped or re-made goal that makes this one void
  std::string blocked;
};

struct SubjectState {
  Subject subject;
  Index rank = 0;
  bool selected = false;
  bool drain = false;
  std::vector<Index> vertices;  ///< in the order of their needs
  Index pool = kNone;
};

class GoalGraph {
 public:
  explicit GoalGraph(const PlanInputs& inputs) : inputs_(inputs) {}

  std::vector<SubjectState> subjects;           ///< those that are kept, by rank
  std::unordered_map<Index, Index> kept_ranks;  ///< rank → place in subjects
  std::vector<Vertex> vertices;                 ///< by subject, then facet
  std::vector<Index> order;                     ///< vertices, each after those it needs
  /// Where a policy chooses nodes: the goals of the cluster that those rest on, and what rests on
  /// these in turn. What belongs to none of the chosen nodes stays as it is.
  std::set<FacetName> cluster_wanted;

  /// Links needs, and finds the order. Errors: Internal (a need that no phase has as a goal, a
  /// circle)
  Result<void> linkAndOrder();

  static std::string idOf(const Vertex& vertex) { return vertex.goal.facet.str(); }
  static bool disturbs(const Vertex& vertex) {
    return vertex.acts && vertex.goal.disruption != Disruption::None &&
           vertex.goal.facet.facet.str() != kPoolFacet;
  }

 private:
  Index find(const FacetRef& facet) const;  ///< only before linkAndOrder is through
  void putInterruptedFirst(std::vector<std::vector<Index>>& needs) const;
  static bool leadsTo(const std::vector<std::vector<Index>>& needs, Index from, Index to);
  Error cycleError() const;

  const PlanInputs& inputs_;
};

/// Kahn's order with a fixed key for ties. Shorter than `count` when there is a circle.
std::vector<Index> topologicalOrder(const std::vector<std::vector<Index>>& needs,
                                    const std::vector<std::uint64_t>& key);

inline void sortUnique(std::vector<Index>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace muster::lifecycle
