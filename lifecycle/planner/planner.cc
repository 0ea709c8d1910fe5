// SPDX-License-Identifier: Apache-2.0
// Planner: what the graph of goals means. See planner.h.
#include "lifecycle/planner/planner.h"

#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"

#include <numeric>
#include <queue>

namespace muster::lifecycle {

std::vector<Index> topologicalOrder(const std::vector<std::vector<Index>>& needs,
                                    const std::vector<std::uint64_t>& key) {
  const auto count = static_cast<Index>(needs.size());
  std::vector<Index> missing(count), order;
  std::vector<std::vector<Index>> dependents(count);
  for (Index i = 0; i < count; ++i) {
    missing[i] = static_cast<Index>(needs[i].size());
    for (Index need : needs[i]) dependents[need].push_back(i);
  }
  auto later = [&key](Index a, Index b) { return key[a] > key[b]; };
  std::priority_queue<Index, std::vector<Index>, decltype(later)> ready(later);
  for (Index i = 0; i < count; ++i)
    if (missing[i] == 0) ready.push(i);
  order.reserve(count);
  while (!ready.empty()) {
    Index next = ready.top();
    ready.pop();
    order.push_back(next);
    for (Index dependent : dependents[next])
      if (--missing[dependent] == 0) ready.push(dependent);
  }
  return order;
}

Index Planner::find(const FacetRef& facet) const {
  const auto subject = kept_ranks_.find(roster_.rankOf(facet.subject));
  if (subject == kept_ranks_.end()) return kNone;
  const auto& candidates = subjects_[subject->second].vertices;
  auto it = std::lower_bound(
      candidates.begin(), candidates.end(), facet.facet,
      [this](Index i, const FacetName& name) { return vertices_[i].goal.facet.facet < name; });
  return it != candidates.end() && vertices_[*it].goal.facet.facet == facet.facet ? *it : kNone;
}

/// What a phase that drives its members has begun on a subject is ended before it begins another
/// there: two would do the same work twice. An order that facts have changed since then yields, as
/// far as that makes no circle.
void Planner::putInterruptedFirst(std::vector<std::vector<Index>>& needs) const {
  if (policy_.interrupted.empty()) return;
  std::vector<Index> begun;
  for (Index i = 0; i < vertices_.size(); ++i)
    if (isInterrupted(vertices_[i].goal.facet, *vertices_[i].phase)) begun.push_back(i);
  auto isLater = [&](Index i, Index first) {
    const auto &other = vertices_[i], &vertex = vertices_[first];
    return other.subject == vertex.subject && other.phase == vertex.phase &&
           !isInterrupted(other.goal.facet, *other.phase);
  };
  for (const Index first : begun)
    std::erase_if(needs[first], [&](Index need) { return isLater(need, first); });
  for (const Index first : begun) {
    if (!vertices_[first].goal.blocked.empty()) continue;  // nothing waits for what cannot go on
    for (const Index other : subjects_[vertices_[first].subject].vertices) {
      if (!isLater(other, first) || leadsTo(needs, first, other)) continue;
      needs[other].push_back(first);
      sortUnique(needs[other]);
    }
  }
}

/// Whether `from` needs `to`, itself or through others.
bool Planner::leadsTo(const std::vector<std::vector<Index>>& needs, Index from, Index to) {
  std::set<Index> seen{from};
  for (std::vector<Index> open{from}; !open.empty();) {
    const Index at = open.back();
    open.pop_back();
    for (const Index need : needs[at]) {
      if (need == to) return true;
      if (seen.insert(need).second) open.push_back(need);
    }
  }
  return false;
}

Result<void> Planner::linkAndOrder() {
  std::vector<std::vector<Index>> needs(vertices_.size());
  for (Index i = 0; i < vertices_.size(); ++i) {
    for (const auto& need : vertices_[i].goal.needs) {
      const Index target = find(need);
      if (target == kNone)
        return fail(ErrorCode::Internal, fmt::format("{} needs {}, which no phase has as a goal",
                                                     idOf(vertices_[i]), need.str()));
      needs[i].push_back(target);
    }
    sortUnique(needs[i]);
  }
  putInterruptedFirst(needs);
  for (Index i = 0; i < vertices_.size(); ++i) vertices_[i].needs = needs[i];
  std::vector<std::uint64_t> key(vertices_.size());
  std::iota(key.begin(), key.end(), std::uint64_t{0});
  order_ = topologicalOrder(needs, key);
  if (order_.size() != vertices_.size()) return fail(cycleError(order_));
  std::vector<Index> position(vertices_.size());
  for (Index at = 0; at < order_.size(); ++at) position[order_[at]] = at;
  for (auto& state : subjects_)
    std::sort(state.vertices.begin(), state.vertices.end(),
              [&position](Index a, Index b) { return position[a] < position[b]; });
  return {};
}

/// Follows unordered needs until a goal comes up again; every goal left over has one.
Error Planner::cycleError(const std::vector<Index>& order) const {
  std::vector<char> ordered(vertices_.size(), 0);
  for (Index i : order) ordered[i] = 1;
  Index at = static_cast<Index>(std::find(ordered.begin(), ordered.end(), 0) - ordered.begin());
  std::vector<Index> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    for (Index need : vertices_[at].needs)
      if (!ordered[need]) {
        at = need;
        break;
      }
  }
  std::string text;
  for (auto it = std::find(path.begin(), path.end(), at); it != path.end(); ++it)
    text += idOf(vertices_[*it]) + " needs ";
  return Error(ErrorCode::Internal,
               "goals depend on each other in a circle: " + text + idOf(vertices_[at]));
}

void Planner::decide() {
  for (Index i : order_) {
    auto& vertex = vertices_[i];
    for (Index need : vertex.needs)
      vertex.after_pool = vertex.after_pool || vertices_[need].after_pool ||
                          need == subjects_[vertices_[need].subject].pool;
    vertex.fact = facts_.find(vertex.goal.facet.subject, vertex.goal.facet.facet);
    const bool unmet = !vertex.fact || !matches(vertex.goal.want, vertex.fact->value) ||
                       isInterrupted(vertex.goal.facet, *vertex.phase);
    // What is on a disk dies with it; the place in the pool is not on the disk.
    if (vertex.goal.facet.facet.str() != kPoolFacet)
      for (Index need : vertex.needs) {
        const auto& other = vertices_[need];
        const bool wiped = other.acts && other.goal.disruption == Disruption::Wipe;
        if (other.subject == vertex.subject && (wiped || other.remade_by != kNone))
          vertex.remade_by = wiped ? need : other.remade_by;
      }
    vertex.acts = unmet || vertex.remade_by != kNone;
    if (vertex.acts && !subjects_[vertex.subject].selected) {
      vertex.acts = false;
      vertex.blocked = "this plan leaves it out";
    }
  }
}

void Planner::computeWaits() {
  for (Index i : order_) {
    auto& vertex = vertices_[i];
    vertex.waits.clear();
    for (Index need : vertex.needs) {
      const auto& other = vertices_[need];
      if (other.acts || !other.blocked.empty()) vertex.waits.push_back(need);
      if (!other.acts)
        vertex.waits.insert(vertex.waits.end(), other.waits.begin(), other.waits.end());
    }
    sortUnique(vertex.waits);
  }
  for (const auto& state : subjects_) {  // a node joins last
    if (state.pool == kNone) continue;
    auto& waits = vertices_[state.pool].waits;
    for (Index i : state.vertices)
      if (i != state.pool && vertices_[i].acts && !vertices_[i].after_pool) waits.push_back(i);
    sortUnique(waits);
  }
}

void Planner::guardWipe(Vertex& vertex) const {
  const auto& subject = vertex.goal.facet.subject;
  if (!vertex.acts || vertex.goal.disruption != Disruption::Wipe || subject.isCluster() ||
      policy_.wipe_allowed.contains(subject.node()))
    return;
  const auto installed = facts_.value(subject, FacetName(std::string(kInstalledFacet)));
  const auto pool = facts_.value(subject, FacetName(std::string(kPoolFacet)));
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
    if (disturbs(vertices_[i]) && vertices_[i].blocked.empty()) {
      vertices_[i].blocked = why;
      changed = true;
    }
  return changed;
}

/// Decides whether the node is drained. Answers whether something was newly blocked.
bool Planner::guardPool(SubjectState& state) {
  const bool was_drained = std::exchange(state.drain, false);
  if (!state.selected || state.subject.isCluster()) return false;
  const bool any = std::any_of(state.vertices.begin(), state.vertices.end(), [this](Index i) {
    return disturbs(vertices_[i]) && vertices_[i].blocked.empty();
  });
  const auto& name = state.subject.str();
  const auto pool = facts_.value(state.subject, FacetName(std::string(kPoolFacet)));
  bool changed = false;
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
    auto blocked = std::find_if(state.vertices.begin(), state.vertices.end(), [this](Index i) {
      return vertices_[i].acts && !vertices_[i].blocked.empty();
    });
    if (blocked != state.vertices.end())
      changed = blockDisturbing(
          state, fmt::format("{} would leave its pool for a plan that cannot finish: {} is blocked",
                             name, idOf(vertices_[*blocked])));
    else
      state.drain = true;
  }
  if (state.pool != kNone) {
    auto& join = vertices_[state.pool];
    if (state.drain) join.acts = true;
    if (was_drained && !state.drain)
      join.acts = !join.fact || !matches(join.goal.want, join.fact->value);
  }
  return changed || was_drained != state.drain;
}

bool Planner::propagate() {
  bool changed = false;
  for (Index i : order_) {
    auto& vertex = vertices_[i];
    if (!vertex.acts || !vertex.blocked.empty()) continue;
    for (Index wait : vertex.waits)
      if (!vertices_[wait].blocked.empty()) {
        vertex.blocked = vertices_[wait].acts
                             ? fmt::format("needs {}, which is blocked", idOf(vertices_[wait]))
                             : fmt::format("needs {}, which is not met; {}", idOf(vertices_[wait]),
                                           vertices_[wait].blocked);
        changed = true;
        break;
      }
  }
  return changed;
}

/// Blocking one action can block others, and a node with a blocked action stays in its pool; blocks
/// are only ever added, so this ends.
void Planner::block() {
  for (auto& vertex : vertices_) {
    guardWipe(vertex);
    if (vertex.acts && vertex.blocked.empty()) vertex.blocked = vertex.goal.blocked;
  }
  for (bool changed = true; changed;) {
    computeWaits();
    changed = propagate();
    for (auto& state : subjects_) changed = guardPool(state) || changed;
  }
}

Result<Plan> Planner::make(const std::vector<Index>& ranks) {
  TRY_OK(checkPolicy());
  TRY_OK(collectGoals(ranks));
  TRY_OK(linkAndOrder());
  decide();
  block();
  return emit();
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

Result<Plan> makePlan(const inventory::Cluster& cluster, const FactSet& facts, const Policy& policy,
                      const Phases& phases) {
  const Roster roster(cluster);
  std::vector<Index> all(roster.size());
  std::iota(all.begin(), all.end(), Index{0});
  return Planner(cluster, roster, facts, policy, phases).make(all);
}

}  // namespace muster::lifecycle
