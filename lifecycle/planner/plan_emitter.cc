// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/planner/plan_emitter.h"

#include "inventory/model/cluster.h"
#include "lifecycle/model/unread.h"

namespace muster::lifecycle {

Action PlanEmitter::actionOf(const Vertex& vertex) const {
  const auto& goal = vertex.goal;
  Action action;
  action.id = GoalGraph::idOf(vertex);
  action.facet = goal.facet;
  action.phase = std::string(vertex.phase->name());
  action.from = vertex.fact ? vertex.fact->value : "";
  action.to = goal.want;
  action.reason = goal.why.empty() ? fmt::format("wanted by {}", vertex.phase->name()) : goal.why;
  if (vertex.remade_by != kNone)
    action.reason += fmt::format("; made again because {} wipes the disk",
                                 GoalGraph::idOf(graph_.vertices[vertex.remade_by]));
  if (inputs_.isInterrupted(goal.facet, *vertex.phase))
    action.reason += "; begun before muster stopped, driven to its end";
  if (graph_.subjects[vertex.subject].drain && goal.facet.facet.str() == kPoolFacet)
    action.from = std::string(kPoolDrained);
  action.disruption = goal.disruption;
  action.expected = goal.expected;
  action.deadline = goal.deadline;
  action.blocked = vertex.blocked;
  return action;
}

std::string PlanEmitter::drainIdOf(const SubjectState& state) const {
  return GoalGraph::idOf(graph_.vertices[state.pool]) + std::string(kDrainSuffix);
}

Action PlanEmitter::drainOf(const SubjectState& state) const {
  std::string because;
  for (Index i : state.vertices)
    if (GoalGraph::disturbs(graph_.vertices[i]))
      because += fmt::format("{}{} ({})", because.empty() ? "" : ", ",
                             graph_.vertices[i].goal.facet.facet.str(),
                             toString(graph_.vertices[i].goal.disruption));
  const auto& join = graph_.vertices[state.pool];
  Action action;
  action.id = drainIdOf(state);
  action.facet = join.goal.facet;
  action.phase = std::string(join.phase->name());
  action.from = join.fact ? join.fact->value : std::string(kPoolIn);
  action.to = std::string(kPoolDrained);
  action.reason = "its jobs finish first, because these disturb it: " + because;
  action.disruption = Disruption::Drain;
  action.expected = kDrainExpected;
  action.deadline = drainDeadlineOf(inputs_.cluster, state.subject);
  return action;
}

/// Needs between the slots of the plan: those that were computed, and the drain before everything
/// that disturbs. There is no circle: a drain needs nothing, and a join waits for nothing that
/// needs a pool.
std::vector<std::vector<Index>> PlanEmitter::actionNeeds(const std::vector<Index>& slot_of,
                                                         const std::vector<Index>& drain_slot,
                                                         Index slots) const {
  std::vector<std::vector<Index>> needs(slots);
  for (Index i : graph_.order) {
    const auto& vertex = graph_.vertices[i];
    if (slot_of[i] == kNone) continue;
    auto& list = needs[slot_of[i]];
    for (Index wait : vertex.waits)
      if (slot_of[wait] != kNone) list.push_back(slot_of[wait]);
    const Index drain = drain_slot[vertex.subject];
    if (drain != kNone &&
        (GoalGraph::disturbs(vertex) || i == graph_.subjects[vertex.subject].pool))
      list.push_back(drain);
    sortUnique(list);
  }
  return needs;
}

/// The slots' actions in this order, and each with the names of those that it needs.
std::vector<Action> PlanEmitter::actionsOf(const std::vector<Slot>& slots,
                                           const std::vector<std::vector<Index>>& needs,
                                           const std::vector<Index>& order) const {
  const auto idOf = [this](const Slot& slot) {
    return slot.is_drain ? drainIdOf(graph_.subjects[slot.of])
                         : GoalGraph::idOf(graph_.vertices[slot.of]);
  };
  std::vector<Action> actions;
  actions.reserve(order.size());  // a fleet's plan has millions: they are there once
  for (Index at : order) {
    const auto& slot = slots[at];
    auto& action = actions.emplace_back(slot.is_drain ? drainOf(graph_.subjects[slot.of])
                                                      : actionOf(graph_.vertices[slot.of]));
    action.needs.reserve(needs[at].size());
    for (Index need : needs[at]) action.needs.push_back(idOf(slots[need]));
    std::ranges::sort(action.needs);
  }
  return actions;
}

Result<Plan> PlanEmitter::emit() const {
  std::vector<Index> slot_of(graph_.vertices.size(), kNone),
      drain_slot(graph_.subjects.size(), kNone);
  std::vector<std::uint64_t> key;
  std::vector<Slot> slots;
  slots.reserve(graph_.vertices.size());
  key.reserve(graph_.vertices.size());
  // Keys are stretched by the subject's rank, so that a drain sorts just before every other action
  // of its node.
  for (Index s = 0; s < graph_.subjects.size(); ++s) {
    if (!graph_.subjects[s].drain) continue;
    drain_slot[s] = static_cast<Index>(slots.size());
    Index first = kNone;
    for (Index i : graph_.subjects[s].vertices) first = std::min(first, i);
    key.push_back(first + s);
    slots.push_back({s, true});
  }
  for (Index i : graph_.order) {
    if (!graph_.vertices[i].acts) continue;
    slot_of[i] = static_cast<Index>(slots.size());
    key.push_back(i + graph_.vertices[i].subject + 1);
    slots.push_back({i, false});
  }
  const auto needs = actionNeeds(slot_of, drain_slot, static_cast<Index>(slots.size()));
  const auto order = topologicalOrder(needs, key);
  if (order.size() != slots.size())
    return fail(ErrorCode::Internal,
                "drains and joins made a circle of actions; this is a defect in muster");
  Plan plan;
  plan.inventory_digest = inputs_.cluster.digest;
  plan.policy = inputs_.policy;
  for (const auto& state : graph_.subjects) recordFacts(state, plan.facts_used);
  plan.facts_digest = digestOf(plan.facts_used);
  plan.actions = actionsOf(slots, needs, order);
  return plan;
}

/// Almost always behind all that are there: subjects come by rank, and their facets are sorted
/// here.
void PlanEmitter::recordFacts(const SubjectState& state,
                              std::map<FacetRef, std::string>& used) const {
  static const std::string kUnknown;
  std::vector<std::pair<const FacetRef*, const std::string*>> seen;
  const auto see = [&seen](const Vertex& vertex) {
    seen.emplace_back(&vertex.goal.facet, vertex.fact ? &vertex.fact->value : &kUnknown);
  };
  for (Index i : state.vertices) {
    const auto& vertex = graph_.vertices[i];
    if (!vertex.acts) continue;
    see(vertex);
    for (Index need : vertex.needs) see(graph_.vertices[need]);
  }
  if (seen.empty()) return;
  std::ranges::sort(seen, [](const auto& a, const auto& b) { return *a.first < *b.first; });
  for (const auto& [facet, value] : seen) used.try_emplace(used.end(), *facet, *value);
  for (const auto& fact : inputs_.facts.view(state.subject))
    if (!isUnreadFacet(fact.facet))
      used.insert_or_assign(FacetRef{fact.subject, fact.facet}, fact.value);
}

}  // namespace muster::lifecycle
