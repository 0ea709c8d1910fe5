// SPDX-License-Identifier: Apache-2.0
// What the graph is made of: subjects, their goals, and which of them need not be looked at
// further.
#include "lifecycle/planner/planner.h"

#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/model/facet_table.h"

namespace muster::lifecycle {
namespace {

void fillDurations(Goal& goal) {
  const auto* row = findFacetRow(goal.facet.facet);
  if (row && goal.expected.count() <= 0) goal.expected = row->expected;
  if (row && goal.deadline.count() <= 0) goal.deadline = row->bound;
  if (goal.deadline.count() <= 0) goal.deadline = kDefaultDeadline;
}

}  // namespace

Roster::Roster(const inventory::Cluster& cluster) {
  std::vector<const std::string*> names;
  names.reserve(cluster.nodes.size());
  for (const auto& node : cluster.nodes) names.push_back(&node.name.str());
  auto less = [](const auto* a, const auto* b) { return inventory::naturalLess(*a, *b); };
  if (!std::is_sorted(names.begin(), names.end(), less))
    std::stable_sort(names.begin(), names.end(), less);
  subjects_.reserve(names.size() + 1);
  subjects_.push_back(Subject::cluster());
  for (const auto* name : names) subjects_.push_back(Subject::parse(*name));
  ranks_.reserve(subjects_.size());
  for (Index rank = 0; rank < size(); ++rank) ranks_.emplace(subjects_[rank].str(), rank);
}

Result<void> Planner::checkPolicy() const {
  for (const auto& subject : policy_.only)
    if (roster_.rankOf(subject) == kNone)
      return fail(ErrorCode::NotFound,
                  fmt::format("the inventory has no node '{}'; `muster inventory show` lists them",
                              subject.str()));
  return {};
}

Result<std::vector<Planner::Listed>> Planner::goalsOf(Index rank) {
  const auto& subject = roster_[rank];
  FactSet::Reads reads;
  std::optional<FactSet::Watch> watch;
  if (reads_) watch.emplace(facts_, reads);
  std::vector<Listed> out;
  for (Phase* phase : phases_)
    for (auto& goal : phase->goals(cluster_, subject, facts_)) {
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
  if (reads_) reads_->emplace_back(rank, std::move(reads));
  return out;
}

/// The needs of goals that are all met: on each other without a circle, or on goals that the
/// cluster has. `by_name_` is theirs.
bool Planner::needsAreQuiet(const std::vector<Listed>& goals, const Subject& subject) const {
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

bool Planner::isQuiet(Index rank, const std::vector<Listed>& goals) {
  by_name_.resize(goals.size());
  for (Index i = 0; i < goals.size(); ++i) by_name_[i] = i;
  std::sort(by_name_.begin(), by_name_.end(), [&goals](Index a, Index b) {
    return goals[a].goal.facet.facet < goals[b].goal.facet.facet;
  });
  const auto facts = facts_.view(roster_[rank]);
  auto fact = facts.begin();
  const FacetName* last = nullptr;
  for (Index i : by_name_) {
    const auto& goal = goals[i].goal;
    if (last && *last == goal.facet.facet) return false;  // claimed twice: said when it is kept
    last = &goal.facet.facet;
    while (fact != facts.end() && fact->facet < *last) ++fact;
    if (fact == facts.end() || fact->facet != *last || !matches(goal.want, fact->value) ||
        isInterrupted(goal.facet, *goals[i].phase))
      return false;
  }
  return needsAreQuiet(goals, roster_[rank]);
}

Result<void> Planner::keep(Index rank, std::vector<Listed> goals) {
  const auto place = static_cast<Index>(subjects_.size());
  kept_ranks_.emplace(rank, place);
  const auto& subject = roster_[rank];
  subjects_.push_back(SubjectState{subject, rank, isSelected(subject), false, {}, kNone});
  const auto first = vertices_.size();
  for (auto& listed : goals) {
    for (auto other = first; other < vertices_.size(); ++other)
      if (vertices_[other].goal.facet == listed.goal.facet)
        return fail(ErrorCode::Internal,
                    fmt::format("{} is claimed by the phases {} and {}", listed.goal.facet.str(),
                                vertices_[other].phase->name(), listed.phase->name()));
    Vertex vertex;
    vertex.goal = std::move(listed.goal);
    vertex.phase = listed.phase;
    vertex.subject = place;
    vertices_.push_back(std::move(vertex));
  }
  return {};
}

/// Goals of the ranks that are not quiet, and of those that their needs lead to: a subject that the
/// policy leaves out still says whether what it must bring is there.
Result<void> Planner::collectGoals(const std::vector<Index>& ranks) {
  TRY(of_cluster, goalsOf(0));
  for (const auto& listed : of_cluster) cluster_goals_.insert(listed.goal.facet.facet);
  TRY_OK(keep(0, std::move(of_cluster)));
  for (Index rank : ranks) {
    if (rank == 0 || !isSelected(roster_[rank])) continue;
    TRY(goals, goalsOf(rank));
    if (!isQuiet(rank, goals)) TRY_OK(keep(rank, std::move(goals)));
  }
  for (Index i = 0; i < vertices_.size(); ++i)  // grows
    for (std::size_t n = 0; n < vertices_[i].goal.needs.size(); ++n) {
      const Index rank = roster_.rankOf(vertices_[i].goal.needs[n].subject);
      if (rank == kNone || kept_ranks_.contains(rank)) continue;
      TRY(goals, goalsOf(rank));
      TRY_OK(keep(rank, std::move(goals)));
    }
  number();
  return {};
}

/// By (subject, facet), so that nothing below depends on the order in which phases were given or
/// subjects were found.
void Planner::number() {
  std::vector<Index> moved(subjects_.size()), places(subjects_.size());
  for (Index i = 0; i < places.size(); ++i) places[i] = i;
  std::sort(places.begin(), places.end(),
            [this](Index a, Index b) { return subjects_[a].rank < subjects_[b].rank; });
  std::vector<SubjectState> sorted;
  for (Index i = 0; i < places.size(); ++i) {
    moved[places[i]] = i;
    sorted.push_back(std::move(subjects_[places[i]]));
    kept_ranks_[sorted.back().rank] = i;
  }
  subjects_ = std::move(sorted);
  for (auto& vertex : vertices_) vertex.subject = moved[vertex.subject];
  std::sort(vertices_.begin(), vertices_.end(), [](const Vertex& a, const Vertex& b) {
    return a.subject != b.subject ? a.subject < b.subject : a.goal.facet.facet < b.goal.facet.facet;
  });
  for (Index i = 0; i < vertices_.size(); ++i) {
    auto& state = subjects_[vertices_[i].subject];
    state.vertices.push_back(i);
    if (vertices_[i].goal.facet.facet.str() == kPoolFacet) state.pool = i;
  }
}

std::vector<Index> Planner::kept() const {
  std::vector<Index> out;
  for (const auto& state : subjects_) out.push_back(state.rank);
  return out;
}

std::vector<std::pair<Index, Index>> Planner::links() const {
  std::vector<std::pair<Index, Index>> out;
  for (const auto& vertex : vertices_)
    for (Index need : vertex.needs) {
      const Index from = subjects_[vertex.subject].rank,
                  to = subjects_[vertices_[need].subject].rank;
      if (from != to && from != 0 && to != 0) out.emplace_back(from, to);
    }
  return out;
}

bool Planner::clusterNeedsNodes() const {
  return std::any_of(vertices_.begin(), vertices_.end(), [this](const Vertex& vertex) {
    return subjects_[vertex.subject].rank == 0 &&
           std::any_of(vertex.needs.begin(), vertex.needs.end(),
                       [&](Index need) { return vertices_[need].subject != vertex.subject; });
  });
}

}  // namespace muster::lifecycle
