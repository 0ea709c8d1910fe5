// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/planner/goal_graph.h"

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

Index GoalGraph::find(const FacetRef& facet) const {
  const auto subject = kept_ranks.find(inputs_.roster.rankOf(facet.subject));
  if (subject == kept_ranks.end()) return kNone;
  const auto& candidates = subjects[subject->second].vertices;
  auto it = std::lower_bound(
      candidates.begin(), candidates.end(), facet.facet,
      [this](Index i, const FacetName& name) { return vertices[i].goal.facet.facet < name; });
  return it != candidates.end() && vertices[*it].goal.facet.facet == facet.facet ? *it : kNone;
}

/// What a phase that drives its members has begun on a subject is ended before it begins another
/// there: two would do the same work twice. An order that facts have changed since then yields, as
/// far as that makes no circle.
void GoalGraph::putInterruptedFirst(std::vector<std::vector<Index>>& needs) const {
  if (inputs_.policy.interrupted.empty()) return;
  std::vector<Index> begun;
  for (Index i = 0; i < vertices.size(); ++i)
    if (inputs_.isInterrupted(vertices[i].goal.facet, *vertices[i].phase)) begun.push_back(i);
  auto isLater = [&](Index i, Index first) {
    const auto &other = vertices[i], &vertex = vertices[first];
    return other.subject == vertex.subject && other.phase == vertex.phase &&
           !inputs_.isInterrupted(other.goal.facet, *other.phase);
  };
  for (const Index first : begun)
    std::erase_if(needs[first], [&](Index need) { return isLater(need, first); });
  for (const Index first : begun) {
    if (!vertices[first].goal.blocked.empty()) continue;  // nothing waits for what cannot go on
    for (const Index other : subjects[vertices[first].subject].vertices) {
      if (!isLater(other, first) || leadsTo(needs, first, other)) continue;
      needs[other].push_back(first);
      sortUnique(needs[other]);
    }
  }
}

/// Whether `from` needs `to`, itself or through others.
bool GoalGraph::leadsTo(const std::vector<std::vector<Index>>& needs, Index from, Index to) {
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

Result<void> GoalGraph::linkAndOrder() {
  std::vector<std::vector<Index>> needs(vertices.size());
  for (Index i = 0; i < vertices.size(); ++i) {
    for (const auto& need : vertices[i].goal.needs) {
      const Index target = find(need);
      if (target == kNone)
        return fail(ErrorCode::Internal, fmt::format("{} needs {}, which no phase has as a goal",
                                                     idOf(vertices[i]), need.str()));
      needs[i].push_back(target);
    }
    sortUnique(needs[i]);
  }
  putInterruptedFirst(needs);
  std::vector<std::uint64_t> key(vertices.size());
  std::iota(key.begin(), key.end(), std::uint64_t{0});
  order = topologicalOrder(needs, key);
  for (Index i = 0; i < vertices.size(); ++i) vertices[i].needs = std::move(needs[i]);
  if (order.size() != vertices.size()) return fail(cycleError());
  std::vector<Index> position(vertices.size());
  for (Index at = 0; at < order.size(); ++at) position[order[at]] = at;
  for (auto& state : subjects)
    std::sort(state.vertices.begin(), state.vertices.end(),
              [&position](Index a, Index b) { return position[a] < position[b]; });
  return {};
}

/// Follows unordered needs until a goal comes up again; every goal left over has one.
Error GoalGraph::cycleError() const {
  std::vector<char> ordered(vertices.size(), 0);
  for (Index i : order) ordered[i] = 1;
  Index at = static_cast<Index>(std::find(ordered.begin(), ordered.end(), 0) - ordered.begin());
  std::vector<Index> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    for (Index need : vertices[at].needs)
      if (!ordered[need]) {
        at = need;
        break;
      }
  }
  std::string text;
  for (auto it = std::find(path.begin(), path.end(), at); it != path.end(); ++it)
    text += idOf(vertices[*it]) + " needs ";
  return Error(ErrorCode::Internal,
               "goals depend on each other in a circle: " + text + idOf(vertices[at]));
}

}  // namespace muster::lifecycle
