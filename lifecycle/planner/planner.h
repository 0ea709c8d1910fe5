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

#include "lifecycle/model/plan.h"

#include <algorithm>
#include <unordered_map>

namespace muster::lifecycle {

using Index = std::uint32_t;
inline constexpr Index kNone = ~Index{0};

/// The subjects of an inventory in the order of plans: the cluster, then nodes naturally.
class Roster {
 public:
  explicit Roster(const inventory::Cluster& cluster);
  Index size() const { return static_cast<Index>(subjects_.size()); }
  const Subject& operator[](Index rank) const { return subjects_[rank]; }
  Index rankOf(const Subject& subject) const {
    auto it = ranks_.find(subject.str());
    return it == ranks_.end() ? kNone : it->second;
  }

 private:
  std::vector<Subject> subjects_;
  std::unordered_map<std::string, Index> ranks_;
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

/// Who asked whose facts for its goals, by rank. Only what a Replanner has to know.
using ReadsByRank = std::vector<std::pair<Index, FactSet::Reads>>;

class Planner {
 public:
  Planner(const inventory::Cluster& cluster, const Roster& roster, const FactSet& facts,
          const Policy& policy, const Phases& phases)
      : cluster_(cluster), roster_(roster), facts_(facts), policy_(policy), phases_(phases) {}

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
  struct Listed {
    Goal goal;
    Phase* phase = nullptr;
  };
  Result<void> checkPolicy() const;
  Result<std::vector<Listed>> goalsOf(Index rank);
  bool isQuiet(Index rank, const std::vector<Listed>& goals);
  bool needsAreQuiet(const std::vector<Listed>& goals, const Subject& subject) const;
  Result<void> keep(Index rank, std::vector<Listed> goals);
  Result<void> collectGoals(const std::vector<Index>& ranks);
  void number();
  Index find(const FacetRef& facet) const;  ///< only before linkAndOrder is through
  Result<void> linkAndOrder();
  void putInterruptedFirst(std::vector<std::vector<Index>>& needs) const;
  static bool leadsTo(const std::vector<std::vector<Index>>& needs, Index from, Index to);
  Error cycleError(const std::vector<Index>& order) const;
  void decide();
  void computeWaits();
  void block();
  void guardWipe(Vertex& vertex) const;
  bool guardPool(SubjectState& state);
  bool blockDisturbing(const SubjectState& state, const std::string& why);
  bool propagate();
  Result<Plan> emit();
  std::vector<std::vector<Index>> actionNeeds(const std::vector<Index>& slot_of,
                                              const std::vector<Index>& drain_slot,
                                              Index slots) const;
  Action actionOf(const Vertex& vertex) const;
  Action drainOf(const SubjectState& state) const;
  void recordFacts(const SubjectState& state, std::map<FacetRef, std::string>& used) const;

  std::string idOf(const Vertex& vertex) const { return vertex.goal.facet.str(); }
  bool disturbs(const Vertex& vertex) const {
    return vertex.acts && vertex.goal.disruption != Disruption::None &&
           vertex.goal.facet.facet.str() != kPoolFacet;
  }
  bool isInterrupted(const FacetRef& facet, const Phase& phase) const {
    return policy_.interrupted.contains(facet) && phase.resumesAfterMet();
  }
  bool isSelected(const Subject& subject) const {
    return subject.isCluster() || policy_.only.empty() || policy_.only.contains(subject);
  }

  const inventory::Cluster& cluster_;
  const Roster& roster_;
  const FactSet& facts_;
  const Policy& policy_;
  const Phases& phases_;
  ReadsByRank* reads_ = nullptr;
  std::set<FacetName> cluster_goals_;
  std::vector<SubjectState> subjects_;           ///< those that are kept, by rank
  std::unordered_map<Index, Index> kept_ranks_;  ///< rank → place in subjects_
  std::vector<Vertex> vertices_;                 ///< by subject, then facet
  std::vector<Index> order_;                     ///< vertices, each after those it needs
  std::vector<Index> by_name_;                   ///< scratch of isQuiet: goals ordered by facet
};

/// Kahn's order with a fixed key for ties. Shorter than `count` when there is a circle.
std::vector<Index> topologicalOrder(const std::vector<std::vector<Index>>& needs,
                                    const std::vector<std::uint64_t>& key);

inline void sortUnique(std::vector<Index>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace muster::lifecycle
