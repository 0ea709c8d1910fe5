// SPDX-License-Identifier: Apache-2.0
// Planner: what the graph of goals means. See planner.h.
#include "lifecycle/planner/planner.h"

#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/pool_hold.h"
#include "lifecycle/planner/plan_emitter.h"

#include <numeric>

namespace muster::lifecycle {

void Planner::decide() {
  for (Index i : graph_.order) {
    auto& vertex = graph_.vertices[i];
    for (Index need : vertex.needs)
      vertex.after_pool = vertex.after_pool || graph_.vertices[need].after_pool ||
                          need == graph_.subjects[graph_.vertices[need].subject].pool;
    vertex.fact = inputs_.facts.find(vertex.goal.facet.subject, vertex.goal.facet.facet);
    const bool unmet = !vertex.fact || !matches(vertex.goal.want, vertex.fact->value) ||
                       inputs_.isInterrupted(vertex.goal.facet, *vertex.phase);
    // What is on a disk dies with it; the place in the pool is not on the disk.
    if (vertex.goal.facet.facet.str() != kPoolFacet)
      for (Index need : vertex.needs) {
        const auto& other = graph_.vertices[need];
        const bool wiped = other.acts && other.goal.disruption == Disruption::Wipe;
        if (other.subject == vertex.subject && (wiped || other.remade_by != kNone))
          vertex.remade_by = wiped ? need : other.remade_by;
      }
    vertex.acts = unmet || vertex.remade_by != kNone;
    if (!inputs_.policy.only.empty() && vertex.goal.facet.subject.isCluster() &&
        !graph_.cluster_wanted.contains(vertex.goal.facet.facet))
      vertex.acts = false;
    if (vertex.acts && !graph_.subjects[vertex.subject].selected) {
      vertex.acts = false;
      vertex.blocked = "this plan leaves it out";
    }
  }
}

void Planner::computeWaits() {
  for (Index i : graph_.order) {
    auto& vertex = graph_.vertices[i];
    vertex.waits.clear();
    for (Index need : vertex.needs) {
      const auto& other = graph_.vertices[need];
      if (other.acts || !other.blocked.empty()) vertex.waits.push_back(need);
      if (!other.acts)
        vertex.waits.insert(vertex.waits.end(), other.waits.begin(), other.waits.end());
    }
    sortUnique(vertex.waits);
  }
  for (const auto& state : graph_.subjects) {  // a node joins last
    if (state.pool == kNone) continue;
    auto& waits = graph_.vertices[state.pool].waits;
    for (Index i : state.vertices)
      if (i != state.pool && graph_.vertices[i].acts && !graph_.vertices[i].after_pool)
        waits.push_back(i);
    sortUnique(waits);
  }
}

void Planner::guardWipe(Vertex& vertex) const {
  const auto& subject = vertex.goal.facet.subject;
  if (!vertex.acts || vertex.goal.disruption != Disruption::Wipe || subject.isCluster() ||
      inputs_.policy.wipe_allowed.contains(subject.node()))
    return;
  const auto installed = inputs_.facts.value(subject, FacetName(std::string(kInstalledFacet)));
  const auto pool = inputs_.facts.value(subject, FacetName(std::string(kPoolFacet)));
  const bool holds = installed && *installed != kNothingInstalled;
  const bool pooled = mayTakeJobs(pool);
  if (!holds && !pooled) return;
  std::string why = holds ? fmt::format("its disk holds '{}'", *installed) : std::string();
  if (pooled) why += holds ? " and it is in its pool" : "it is in its pool";
  vertex.blocked =
      fmt::format("{} would be wiped, but {}; {}", subject.str(), why, wipeAdvice(subject));
}

bool Planner::blockDisturbing(const SubjectState& state, const std::string& why) {
  bool changed = false;
  for (Index i : state.vertices)
    if (GoalGraph::disturbs(graph_.vertices[i]) && graph_.vertices[i].blocked.empty()) {
      graph_.vertices[i].blocked = why;
      changed = true;
    }
  return changed;
}

/// Decides whether the node is drained. Answers whether something was newly blocked.
bool Planner::guardPool(SubjectState& state) {
  const bool was_drained = std::exchange(state.drain, false);
  if (!state.selected || state.subject.isCluster()) return false;
  const bool any = std::any_of(state.vertices.begin(), state.vertices.end(), [this](Index i) {
    return GoalGraph::disturbs(graph_.vertices[i]) && graph_.vertices[i].blocked.empty();
  });
  const auto& name = state.subject.str();
  const auto pool = inputs_.facts.value(state.subject, FacetName(std::string(kPoolFacet)));
  bool changed = false;
  if (const auto hold = bindingHoldOf(inputs_.facts, state.subject); any && hold)
    changed = blockDisturbing(state, poolHoldText(state.subject, *hold));
  if (any && !pool && state.pool != kNone)
    changed = blockDisturbing(state, fmt::format("it is not known whether {} is in its pool; see "
                                                 "`muster why {}` for why the pool did not answer",
                                                 name, name));
  if (any && mayTakeJobs(pool) && state.pool == kNone)
    changed =
        blockDisturbing(state, fmt::format("{} is in a pool that the inventory does not declare; "
                                           "take it out by hand, or declare the pool",
                                           name));
  if (any && mayTakeJobs(pool) && state.pool != kNone) {
    // Whose drain was overridden joins again by the hand of the person who drained it.
    const bool is_held = poolHoldOf(inputs_.facts, state.subject).has_value();
    auto blocked = std::find_if(state.vertices.begin(), state.vertices.end(), [&, this](Index i) {
      return graph_.vertices[i].acts && !graph_.vertices[i].blocked.empty() &&
             !(is_held && i == state.pool);
    });
    if (blocked != state.vertices.end())
      changed = blockDisturbing(
          state, fmt::format("{} would leave its pool for a plan that cannot finish: {} is blocked",
                             name, GoalGraph::idOf(graph_.vertices[*blocked])));
    else
      state.drain = true;
  }
  if (state.pool != kNone) {
    auto& join = graph_.vertices[state.pool];
    if (state.drain) join.acts = true;
    if (was_drained && !state.drain)
      join.acts = !join.fact || !matches(join.goal.want, join.fact->value);
  }
  return changed || was_drained != state.drain;
}

bool Planner::propagate() {
  bool changed = false;
  for (Index i : graph_.order) {
    auto& vertex = graph_.vertices[i];
    if (!vertex.acts || !vertex.blocked.empty()) continue;
    for (Index wait : vertex.waits)
      if (!graph_.vertices[wait].blocked.empty()) {
        vertex.blocked =
            graph_.vertices[wait].acts
                ? fmt::format("needs {}, which is blocked", GoalGraph::idOf(graph_.vertices[wait]))
                : fmt::format("needs {}, which is not met; {}",
                              GoalGraph::idOf(graph_.vertices[wait]),
                              graph_.vertices[wait].blocked);
        changed = true;
        break;
      }
  }
  return changed;
}

/// Blocking one action can block others, and a node with a blocked action stays in its pool; blocks
/// are only ever added, so this ends.
void Planner::block() {
  for (auto& vertex : graph_.vertices) {
    guardWipe(vertex);
    if (vertex.acts && vertex.blocked.empty()) vertex.blocked = vertex.goal.blocked;
  }
  for (bool changed = true; changed;) {
    computeWaits();
    changed = propagate();
    for (auto& state : graph_.subjects) changed = guardPool(state) || changed;
  }
}

Result<Plan> Planner::make(const std::vector<Index>& ranks) {
  TRY_OK(GoalCollector(inputs_, graph_, reads_).collect(ranks));
  TRY_OK(graph_.linkAndOrder());
  decide();
  block();
  computeWaits();
  return PlanEmitter(inputs_, graph_).emit();
}

std::vector<Index> Planner::kept() const {
  std::vector<Index> out;
  for (const auto& state : graph_.subjects) out.push_back(state.rank);
  return out;
}

std::vector<std::pair<Index, Index>> Planner::links() const {
  std::vector<std::pair<Index, Index>> out;
  for (const auto& vertex : graph_.vertices)
    for (Index need : vertex.needs) {
      const Index from = graph_.subjects[vertex.subject].rank,
                  to = graph_.subjects[graph_.vertices[need].subject].rank;
      if (from != to && from != 0 && to != 0) out.emplace_back(from, to);
    }
  return out;
}

bool Planner::clusterNeedsNodes() const {
  return std::any_of(graph_.vertices.begin(), graph_.vertices.end(), [this](const Vertex& vertex) {
    return graph_.subjects[vertex.subject].rank == 0 &&
           std::any_of(vertex.needs.begin(), vertex.needs.end(),
                       [&](Index need) { return graph_.vertices[need].subject != vertex.subject; });
  });
}

std::map<FacetRef, std::string> Planner::factsUsedBy(Index rank) const {
  std::map<FacetRef, std::string> used;
  PlanEmitter(inputs_, graph_).recordFacts(graph_.subjects[graph_.kept_ranks.at(rank)], used);
  return used;
}

std::chrono::seconds drainDeadlineOf(const inventory::Cluster& cluster, const Subject& subject) {
  const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
  const auto profile = node ? cluster.profiles.find(node->profile) : cluster.profiles.end();
  if (profile == cluster.profiles.end()) return kDrainDeadline;
  const auto pool = cluster.pools.find(profile->second.pool);
  if (pool == cluster.pools.end() || !pool->second.drain.deadline_minutes) return kDrainDeadline;
  return std::chrono::minutes(*pool->second.drain.deadline_minutes) + kDrainGrace;
}

std::string wipeAdvice(const Subject& subject) {
  return fmt::format("if that is meant, allow it once: `muster wipe {} --reason TEXT`",
                     subject.str());
}

Result<Plan> makePlan(const inventory::Cluster& cluster, const Roster& roster, const FactSet& facts,
                      const Policy& policy, const Phases& phases) {
  std::vector<Index> ranks;
  for (const auto& subject : policy.only)
    if (const Index rank = roster.rankOf(subject); rank != kNone) ranks.push_back(rank);
  if (policy.only.empty()) {
    ranks.resize(roster.size());
    std::iota(ranks.begin(), ranks.end(), Index{0});
  }
  std::ranges::sort(ranks);
  return Planner(cluster, roster, facts, policy, phases).make(ranks);
}

Result<Plan> makePlan(const inventory::Cluster& cluster, const FactSet& facts, const Policy& policy,
                      const Phases& phases) {
  return makePlan(cluster, Roster(cluster), facts, policy, phases);
}

}  // namespace muster::lifecycle
