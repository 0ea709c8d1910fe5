// SPDX-License-Identifier: Apache-2.0
// The decided graph as a plan: actions with their reasons, in order, and the facts they rest on.
#pragma once

#include "lifecycle/planner/goal_graph.h"

namespace muster::lifecycle {

class PlanEmitter {
 public:
  /// Waits and drains are decided.
  PlanEmitter(const PlanInputs& inputs, const GoalGraph& graph) : inputs_(inputs), graph_(graph) {}

  /// Ordered again, because drain and join add edges. Errors: Internal (a circle of actions)
  Result<Plan> emit() const;
  /// Facts that the plan has because of this subject.
  void recordFacts(const SubjectState& state, std::map<FacetRef, std::string>& used) const;

 private:
  /// An action to be.
  struct Slot {
    Index of = kNone;  ///< a vertex, or the subject that is drained
    bool is_drain = false;
  };
  std::vector<Action> actionsOf(const std::vector<Slot>& slots,
                                const std::vector<std::vector<Index>>& needs,
                                const std::vector<Index>& order) const;
  std::vector<std::vector<Index>> actionNeeds(const std::vector<Index>& slot_of,
                                              const std::vector<Index>& drain_slot,
                                              Index slots) const;
  Action actionOf(const Vertex& vertex) const;
  std::string drainIdOf(const SubjectState& state) const;
  Action drainOf(const SubjectState& state) const;

  const PlanInputs& inputs_;
  const GoalGraph& graph_;
};

}  // namespace muster::lifecycle
