// SPDX-License-Identifier: Apache-2.0
// Replanner: the plan of a fleet again and again, while the facts of a few nodes change. Always
// what makePlan answers for the same facts, the same hash included; only sooner.
//
// Nodes whose goals do not need each other's are independent of each other, given what the
// cluster's own goals come to. So the plan is kept in parts, one for each set of nodes tied
// together by needs, and a change costs the parts it can reach: nodes whose facts changed, nodes
// whose goals were computed from those facts (FactSet::Watch tells), and the parts they belong to.
// What concerns the cluster itself costs a whole plan.
#pragma once

#include "lifecycle/planner/planner.h"

namespace muster::lifecycle {

class Replanner {
 public:
  /// `cluster` and the phases are borrowed.
  Replanner(const inventory::Cluster& cluster, Policy policy, Phases phases)
      : cluster_(cluster),
        policy_(std::move(policy)),
        phases_(std::move(phases)),
        roster_(cluster) {}
  Replanner(const Replanner&) = delete;

  /// `changed`: every subject of which a fact differs from those of the last call; the first call
  /// plans everything. Errors: those of makePlan; the next call then plans everything
  Result<Plan> plan(const FactSet& facts, const std::set<Subject>& changed);

  struct Cost {
    std::size_t subjects = 0;  ///< whose goals were asked for by the last call
    bool whole = false;
  };
  const Cost& lastCost() const { return cost_; }

 private:
  /// What is planned together.
  struct Part {
    std::vector<Index> ranks;
    std::vector<Action> actions;
    std::map<FacetRef, std::string> facts_used;
  };
  using PartId = std::uint32_t;

  Result<void> planAll(const FactSet& facts);
  /// Answers whether a change of these ranks is contained in them (and was planned); else
  /// everything is to be planned.
  Result<bool> planSome(const FactSet& facts, std::set<Index> ranks);
  bool reach(std::set<Index>& ranks) const;
  void takeReads(const ReadsByRank& reads);
  void drop(PartId id);
  void split(const Planner& planner, Plan plan);
  Result<Plan> assemble() const;

  const inventory::Cluster& cluster_;
  const Policy policy_;
  const Phases phases_;
  const Roster roster_;
  bool valid_ = false;
  bool entangled_ = false;  ///< the cluster's goals need nodes or rest on their facts, or some
                            ///< goals rest on all facts
  std::unordered_map<PartId, Part> parts_;
  std::unordered_map<Index, PartId> part_of_;  ///< rank → its part, if it is not quiet
  std::unordered_map<Index, std::vector<Index>>
      read_by_;  ///< rank → others whose goals were computed from its facts
  std::unordered_map<Index, std::vector<Index>> reads_of_;  ///< the same, the other way
  PartId next_part_ = 1;
  Cost cost_;
};

}  // namespace muster::lifecycle
