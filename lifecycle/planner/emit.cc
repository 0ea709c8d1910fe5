// SPDX-License-Identifier: Apache-2.0
// The decided graph as a plan: actions with their reasons, in order, and the facts they rest on.
#include "inventory/model/cluster.h"
#include "lifecycle/planner/planner.h"

namespace muster::lifecycle {

Action Planner::actionOf(const Vertex& vertex) const {
  const auto& goal = vertex.goal;
  Action action;
  action.id = idOf(vertex);
  action.facet = goal.facet;
  action.phase = std::string(vertex.phase->name());
  action.from = vertex.fact ? vertex.fact->value : "";
  action.to = goal.want;
  action.reason = goal.why.empty() ? fmt::format("wanted by {}", vertex.phase->name()) : goal.why;
  if (vertex.remade_by != kNone)
    action.reason +=
        fmt::format("; made again because {} wipes the disk", idOf(vertices_[vertex.remade_by]));
  if (isInterrupted(goal.facet, *vertex.phase))
    action.reason += "; begun before muster stopped, driven to its end";
  if (subjects_[vertex.subject].drain && goal.facet.facet.str() == kPoolFacet)
    action.from = std::string(kPoolDrained);
  action.disruption = goal.disruption;
  action.expected = goal.expected;
  action.deadline = goal.deadline;
  action.blocked = vertex.blocked;
  return action;
}

Action Planner::drainOf(const SubjectState& state) const {
  std::string because;
  for (Index i : state.vertices)
    if (disturbs(vertices_[i]))
      because +=
          fmt::format("{}{} ({})", because.empty() ? "" : ", ", vertices_[i].goal.facet.facet.str(),
                      toString(vertices_[i].goal.disruption));
  const auto& join = vertices_[state.pool];
  Action action;
  action.id = idOf(join) + std::string(kDrainSuffix);
  action.facet = join.goal.facet;
  action.phase = std::string(join.phase->name());
  action.from = join.fact ? join.fact->value : std::string(kPoolIn);
  action.to = std::string(kPoolDrained);
  action.reason = "its jobs finish first, because these disturb it: " + because;
  action.disruption = Disruption::Drain;
  action.expected = kDrainExpected;
  action.deadline = drainDeadlineOf(cluster_, state.subject);
  return action;
}

/// Needs between the slots of the plan: those that were computed, and the drain before everything
/// that disturbs. There is no circle: a drain needs nothing, and a join waits for nothing that
/// needs a pool.
std::vector<std::vector<Index>> Planner::actionNeeds(const std::vector<Index>& slot_of,
                                                     const std::vector<Index>& drain_slot,
                                                     Index slots) const {
  std::vector<std::vector<Index>> needs(slots);
  for (Index i : order_) {
    const auto& vertex = vertices_[i];
    if (slot_of[i] == kNone) continue;
    auto& list = needs[slot_of[i]];
    for (Index wait : vertex.waits)
      if (slot_of[wait] != kNone) list.push_back(slot_of[wait]);
    const Index drain = drain_slot[vertex.subject];
    if (drain != kNone && (disturbs(vertex) || i == subjects_[vertex.subject].pool))
      list.push_back(drain);
    sortUnique(list);
  }
  return needs;
}

Result<Plan> Planner::emit() {
  computeWaits();
  std::vector<Index> slot_of(vertices_.size(), kNone), drain_slot(subjects_.size(), kNone);
  std::vector<std::uint64_t> key;
  std::vector<Action> actions;
  // Keys are stretched by the subject's rank, so that a drain sorts just before every other action
  // of its node.
  for (Index s = 0; s < subjects_.size(); ++s) {
    if (!subjects_[s].drain) continue;
    drain_slot[s] = static_cast<Index>(actions.size());
    Index first = kNone;
    for (Index i : subjects_[s].vertices) first = std::min(first, i);
    key.push_back(first + s);
    actions.push_back(drainOf(subjects_[s]));
  }
  for (Index i : order_) {
    if (!vertices_[i].acts) continue;
    slot_of[i] = static_cast<Index>(actions.size());
    key.push_back(i + vertices_[i].subject + 1);
    actions.push_back(actionOf(vertices_[i]));
  }
  const auto needs = actionNeeds(slot_of, drain_slot, static_cast<Index>(actions.size()));
  Plan plan;
  plan.inventory_digest = cluster_.digest;
  plan.policy = policy_;
  for (const auto& state : subjects_) recordFacts(state, plan.facts_used);
  plan.facts_digest = digestOf(plan.facts_used);
  const auto order = topologicalOrder(needs, key);
  if (order.size() != actions.size())
    return fail(ErrorCode::Internal,
                "drains and joins made a circle of actions; this is a defect in muster");
  for (Index slot : order) {
    for (Index need : needs[slot]) actions[slot].needs.push_back(actions[need].id);
    std::sort(actions[slot].needs.begin(), actions[slot].needs.end());
    plan.actions.push_back(actions[slot]);
  }
  return plan;
}

void Planner::recordFacts(const SubjectState& state, std::map<FacetRef, std::string>& used) const {
  bool acts = false;
  for (Index i : state.vertices) {
    const auto& vertex = vertices_[i];
    if (!vertex.acts) continue;
    acts = true;
    used.emplace(vertex.goal.facet, vertex.fact ? vertex.fact->value : "");
    for (Index need : vertex.needs)
      used.emplace(vertices_[need].goal.facet,
                   vertices_[need].fact ? vertices_[need].fact->value : "");
  }
  if (!acts) return;
  for (const auto& fact : facts_.view(state.subject))
    used.insert_or_assign(FacetRef{fact.subject, fact.facet}, fact.value);
}

std::map<FacetRef, std::string> Planner::factsUsedBy(Index rank) const {
  std::map<FacetRef, std::string> used;
  recordFacts(subjects_[kept_ranks_.at(rank)], used);
  return used;
}

}  // namespace muster::lifecycle
