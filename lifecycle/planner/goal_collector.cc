// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/planner/goal_collector.h"

#include "lifecycle/model/facet_table.h"

namespace muster::lifecycle {

namespace {

constexpr std::size_t kSample = 64;  ///< subjects, by which the number of all goals is foreseen

void fillDurations(Goal& goal) {
  const auto* row = findFacetRow(goal.facet.facet);
  if (row && goal.expected.count() <= 0) goal.expected = row->expected;
  if (row && goal.deadline.count() <= 0) goal.deadline = row->bound;
  if (goal.deadline.count() <= 0) goal.deadline = kDefaultDeadline;
}

}  // namespace

Result<void> GoalCollector::checkPolicy() const {
  for (const auto& subject : inputs_.policy.only)
    if (inputs_.roster.rankOf(subject) == kNone)
      return fail(ErrorCode::NotFound,
                  fmt::format("the inventory has no node '{}'; `muster inventory show` lists them",
                              subject.str()));
  return {};
}

Result<std::vector<GoalCollector::Listed>> GoalCollector::goalsOf(Index rank) {
  const auto& subject = inputs_.roster[rank];
  FactSet::Reads reads;
  std::optional<FactSet::Watch> watch;
  if (reads_) watch.emplace(inputs_.facts, reads);
  std::vector<Listed> out;
  for (Phase* phase : inputs_.phases)
    for (auto& goal : phase->goals(inputs_.cluster, subject, inputs_.facts)) {
      if (goal.facet.subject != subject)
        return fail(ErrorCode::Internal,
                    fmt::format("phase {} answered the goal {} when asked for {}", phase->name(),
                                goal.facet.str(), subject.str()));
      if (goal.expected.count() <= 0 || goal.deadline.count() <= 0) fillDurations(goal);
      out.push_back({std::move(goal), phase});
    }
  std::vector<Goal*> goals;
  goals.reserve(out.size());
  for (auto& listed : out) goals.push_back(&listed.goal);
  resolveStages(goals);
  if (rank != 0 && !inputs_.policy.only.empty())
    for (const auto* goal : goals)
      for (const auto& need : goal->needs)
        if (need.subject.isCluster()) graph_.cluster_wanted.insert(need.facet);
  if (reads_) reads_->emplace_back(rank, std::move(reads));
  return out;
}

/// The needs of goals that are all met: on each other without a circle, or on goals that the
/// cluster has. `by_name_` is theirs.
bool GoalCollector::needsAreQuiet(const std::vector<Listed>& goals, const Subject& subject) const {
  for (Index i = 0; i < goals.size(); ++i)
    for (const auto& need : goals[i].goal.needs) {
      if (need.subject != subject) {
        if (!need.subject.isCluster() || !cluster_goals_.contains(need.facet)) return false;
        continue;
      }
      auto at = std::lower_bound(
          by_name_.begin(), by_name_.end(), need.facet,
          [&goals](Index g, const FacetName& name) { return goals[g].goal.facet.facet < name; });
      if (at == by_name_.end() || goals[*at].goal.facet.facet != need.facet) return false;
      if (*at >= i)
        return false;  // what every goal needs is listed before it: no circle. Otherwise the graph
                       // will tell
    }
  return true;
}

bool GoalCollector::isQuiet(Index rank, const std::vector<Listed>& goals) {
  by_name_.resize(goals.size());
  for (Index i = 0; i < goals.size(); ++i) by_name_[i] = i;
  std::sort(by_name_.begin(), by_name_.end(), [&goals](Index a, Index b) {
    return goals[a].goal.facet.facet < goals[b].goal.facet.facet;
  });
  const auto facts = inputs_.facts.view(inputs_.roster[rank]);
  auto fact = facts.begin();
  const FacetName* last = nullptr;
  for (Index i : by_name_) {
    const auto& goal = goals[i].goal;
    if (last && *last == goal.facet.facet) return false;  // claimed twice: said when it is kept
    last = &goal.facet.facet;
    while (fact != facts.end() && fact->facet < *last) ++fact;
    if (fact == facts.end() || fact->facet != *last || !matches(goal.want, fact->value) ||
        inputs_.isInterrupted(goal.facet, *goals[i].phase))
      return false;
  }
  return needsAreQuiet(goals, inputs_.roster[rank]);
}

Result<void> GoalCollector::keep(Index rank, std::vector<Listed> goals) {
  const auto place = static_cast<Index>(graph_.subjects.size());
  graph_.kept_ranks.emplace(rank, place);
  const auto& subject = inputs_.roster[rank];
  graph_.subjects.push_back(
      SubjectState{subject, rank, inputs_.isSelected(subject), false, {}, kNone});
  std::ranges::stable_sort(
      goals, {}, [](const Listed& each) -> const FacetName& { return each.goal.facet.facet; });
  const auto first = graph_.vertices.size();
  for (auto& listed : goals) {
    if (graph_.vertices.size() > first && graph_.vertices.back().goal.facet == listed.goal.facet)
      return fail(ErrorCode::Internal,
                  fmt::format("{} is claimed by the phases {} and {}", listed.goal.facet.str(),
                              graph_.vertices.back().phase->name(), listed.phase->name()));
    Vertex vertex;
    vertex.goal = std::move(listed.goal);
    vertex.phase = listed.phase;
    vertex.subject = place;
    graph_.vertices.push_back(std::move(vertex));
  }
  return {};
}

Result<void> GoalCollector::collect(const std::vector<Index>& ranks) {
  TRY_OK(checkPolicy());
  TRY(of_cluster, goalsOf(0));
  for (const auto& listed : of_cluster) cluster_goals_.insert(listed.goal.facet.facet);
  TRY_OK(keep(0, std::move(of_cluster)));
  for (std::size_t n = 0; n < ranks.size(); ++n) {
    const Index rank = ranks[n];
    // A fleet of which nothing is known has a million, which are not moved as their number grows.
    if (n == kSample) graph_.vertices.reserve(graph_.vertices.size() * ranks.size() / kSample);
    if (rank == 0 || !inputs_.isSelected(inputs_.roster[rank])) continue;
    TRY(goals, goalsOf(rank));
    if (!isQuiet(rank, goals)) TRY_OK(keep(rank, std::move(goals)));
  }
  for (Index i = 0; i < graph_.vertices.size(); ++i)  // grows
    for (std::size_t n = 0; n < graph_.vertices[i].goal.needs.size(); ++n) {
      const Index rank = inputs_.roster.rankOf(graph_.vertices[i].goal.needs[n].subject);
      if (rank == kNone || graph_.kept_ranks.contains(rank)) continue;
      TRY(goals, goalsOf(rank));
      TRY_OK(keep(rank, std::move(goals)));
    }
  number();
  chooseClusterGoals();
  return {};
}

/// From what the nodes need to everything of the cluster that is linked with it, either way: the
/// cables are compared where the subnet manager that sees them is wanted.
void GoalCollector::chooseClusterGoals() {
  const bool is_chosen = inputs_.policy.only.contains(Subject::cluster());
  for (bool grew = !inputs_.policy.only.empty(); grew;) {
    const auto before = graph_.cluster_wanted.size();
    for (const auto& vertex : graph_.vertices) {
      if (!vertex.goal.facet.subject.isCluster()) continue;
      auto& wanted = graph_.cluster_wanted;
      bool is_linked = is_chosen || wanted.contains(vertex.goal.facet.facet);
      for (const auto& need : vertex.goal.needs)
        is_linked = is_linked || (need.subject.isCluster() && wanted.contains(need.facet));
      if (!is_linked) continue;
      wanted.insert(vertex.goal.facet.facet);
      for (const auto& need : vertex.goal.needs)
        if (need.subject.isCluster()) wanted.insert(need.facet);
    }
    grew = graph_.cluster_wanted.size() != before;
  }
}

/// By (subject, facet), so that nothing below depends on the order in which phases were given or
/// subjects were found.
void GoalCollector::number() {
  std::vector<Index> moved(graph_.subjects.size()), places(graph_.subjects.size());
  for (Index i = 0; i < places.size(); ++i) places[i] = i;
  std::sort(places.begin(), places.end(),
            [this](Index a, Index b) { return graph_.subjects[a].rank < graph_.subjects[b].rank; });
  std::vector<SubjectState> sorted;
  for (Index i = 0; i < places.size(); ++i) {
    moved[places[i]] = i;
    sorted.push_back(std::move(graph_.subjects[places[i]]));
    graph_.kept_ranks[sorted.back().rank] = i;
  }
  graph_.subjects = std::move(sorted);
  for (auto& vertex : graph_.vertices) vertex.subject = moved[vertex.subject];
  const auto stands_before = [](const Vertex& a, const Vertex& b) {
    return a.subject != b.subject ? a.subject < b.subject : a.goal.facet.facet < b.goal.facet.facet;
  };
  // They are as they were kept, unless a need has brought a subject in later: a million vertices
  // are not moved for nothing.
  if (!std::ranges::is_sorted(graph_.vertices, stands_before))
    std::ranges::sort(graph_.vertices, stands_before);
  for (Index i = 0; i < graph_.vertices.size(); ++i) {
    auto& state = graph_.subjects[graph_.vertices[i].subject];
    state.vertices.push_back(i);
    if (graph_.vertices[i].goal.facet.facet.str() == kPoolFacet) state.pool = i;
  }
}

}  // namespace muster::lifecycle
