// SPDX-License-Identifier: Apache-2.0
// The cluster's part has the id kClusterPart; its actions do not need those of nodes, or everything
// is planned each time.
#include "lifecycle/planner/replanner.h"

#include "inventory/model/cluster.h"

#include <numeric>

namespace muster::lifecycle {
namespace {

constexpr std::uint32_t kClusterPart = 0;

/// Sets joined pair by pair; each has one of its members as its name.
class Unions {
 public:
  Index find(Index member) {
    auto it = parent_.find(member);
    if (it == parent_.end()) return member;
    return it->second = find(it->second);
  }
  void join(Index a, Index b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::unordered_map<Index, Index> parent_;
};

/// As the planner numbers: a drain before everything else of its node, the rest by facet.
bool comesFirst(const Action& a, const Action& b) {
  const bool drain_a = a.id.ends_with(kDrainSuffix), drain_b = b.id.ends_with(kDrainSuffix);
  return drain_a != drain_b ? drain_a : a.facet.facet < b.facet.facet;
}

}  // namespace

Result<Plan> Replanner::plan(const FactSet& facts, const std::set<Subject>& changed) {
  std::set<Index> ranks;
  // Which goals of the cluster are wanted depends on all chosen nodes.
  bool whole = !valid_ || entangled_ || !policy_.only.empty();
  for (const auto& subject : changed)
    if (const Index rank = roster_.rankOf(subject); rank != kNone)
      ranks.insert(rank);  // facts of undeclared nodes are nobody's
  whole = whole || ranks.contains(0);
  valid_ = false;
  cost_ = {};
  if (!whole) {
    TRY(contained, planSome(facts, std::move(ranks)));
    whole = !contained;
  }
  if (whole) TRY_OK(planAll(facts));
  valid_ = true;
  return assemble();
}

Result<void> Replanner::planAll(const FactSet& facts) {
  parts_.clear();
  part_of_.clear();
  read_by_.clear();
  reads_of_.clear();
  entangled_ = false;
  std::vector<Index> all(roster_.size());
  std::iota(all.begin(), all.end(), Index{0});
  Planner planner(cluster_, roster_, facts, policy_, phases_);
  ReadsByRank reads;
  planner.recordReads(reads);
  TRY(plan, planner.make(all));
  takeReads(reads);
  entangled_ = entangled_ || planner.clusterNeedsNodes();
  cost_ = {reads.size(), true};
  split(planner, std::move(plan));
  return {};
}

/// Adds those whose goals rest on the facts of these, and everybody that a part holds together.
/// Answers false when that is the cluster.
bool Replanner::reach(std::set<Index>& ranks) const {
  std::vector<Index> todo(ranks.begin(), ranks.end());
  auto add = [&](Index rank) {
    if (ranks.insert(rank).second) todo.push_back(rank);
  };
  while (!todo.empty()) {
    const Index rank = todo.back();
    todo.pop_back();
    if (rank == 0) return false;
    if (auto readers = read_by_.find(rank); readers != read_by_.end())
      for (Index reader : readers->second) add(reader);
    if (auto part = part_of_.find(rank); part != part_of_.end())
      for (Index other : parts_.at(part->second).ranks) add(other);
  }
  return true;
}

Result<bool> Replanner::planSome(const FactSet& facts, std::set<Index> ranks) {
  for (;;) {  // each round adds subjects, so this ends
    if (!reach(ranks)) return false;
    Planner planner(cluster_, roster_, facts, policy_, phases_);
    ReadsByRank reads;
    planner.recordReads(reads);
    TRY(plan, planner.make({ranks.begin(), ranks.end()}));
    const auto before = ranks.size();
    for (Index rank : planner.kept())
      if (rank != 0 && part_of_.contains(rank)) ranks.insert(rank);  // its part now holds these too
    if (ranks.size() != before) continue;
    for (Index rank : ranks)
      if (auto part = part_of_.find(rank); part != part_of_.end()) drop(part->second);
    takeReads(reads);
    if (entangled_ || planner.clusterNeedsNodes()) return false;
    cost_ = {reads.size(), false};
    split(planner, std::move(plan));
    return true;
  }
}

void Replanner::takeReads(const ReadsByRank& reads) {
  for (const auto& [rank, asked] : reads) {
    auto& mine = reads_of_[rank];
    for (Index other : mine) std::erase(read_by_[other], rank);
    mine.clear();
    entangled_ = entangled_ || asked.all;
    for (const auto& name : asked.subjects) {
      const Index other = roster_.rankOf(Subject::parse(name));
      if (other == kNone || other == rank || other == 0)
        continue;  // a change of the cluster's facts costs a whole plan anyway
      entangled_ = entangled_ || rank == 0;
      mine.push_back(other);
      read_by_[other].push_back(rank);
    }
    if (mine.empty()) reads_of_.erase(rank);
  }
}

void Replanner::drop(PartId id) {
  auto part = parts_.find(id);
  for (Index rank : part->second.ranks) part_of_.erase(rank);
  parts_.erase(part);
}

/// Sorts a plan of some subjects, and of the cluster, into parts.
void Replanner::split(const Planner& planner, Plan plan) {
  Unions unions;
  for (const auto& [from, to] : planner.links()) unions.join(from, to);
  std::unordered_map<Index, PartId> ids;
  parts_[kClusterPart] = Part{{}, {}, planner.factsUsedBy(0)};
  for (Index rank : planner.kept()) {
    if (rank == 0) continue;
    auto [id, fresh] = ids.try_emplace(unions.find(rank), next_part_);
    if (fresh) ++next_part_;
    auto& part = parts_[id->second];
    part.ranks.push_back(rank);
    part.facts_used.merge(planner.factsUsedBy(rank));
    part_of_[rank] = id->second;
  }
  for (auto& action : plan.actions) {
    const Index rank = roster_.rankOf(action.facet.subject);
    parts_.at(rank == 0 ? kClusterPart : part_of_.at(rank)).actions.push_back(std::move(action));
  }
}

/// All parts as one plan, in the order that the planner would give them.
Result<Plan> Replanner::assemble() const {
  Plan plan;
  plan.inventory_digest = cluster_.digest;
  plan.policy = policy_;
  std::map<Index, std::vector<const Action*>> by_rank;
  for (const auto& [id, part] : parts_) {
    for (const auto& action : part.actions)
      by_rank[roster_.rankOf(action.facet.subject)].push_back(&action);
    for (const auto& [facet, value] : part.facts_used) plan.facts_used.emplace(facet, value);
  }
  plan.facts_digest = digestOf(plan.facts_used);
  std::vector<const Action*> actions;
  for (auto& [rank, mine] : by_rank) {
    std::sort(mine.begin(), mine.end(),
              [](const Action* a, const Action* b) { return comesFirst(*a, *b); });
    actions.insert(actions.end(), mine.begin(), mine.end());
  }
  std::unordered_map<std::string_view, Index> slots;
  for (Index i = 0; i < actions.size(); ++i) slots.emplace(actions[i]->id, i);
  std::vector<std::vector<Index>> needs(actions.size());
  std::vector<std::uint64_t> key(actions.size());
  for (Index i = 0; i < actions.size(); ++i) {
    key[i] = i;
    for (const auto& need : actions[i]->needs) needs[i].push_back(slots.at(need));
  }
  for (Index i : topologicalOrder(needs, key)) plan.actions.push_back(*actions[i]);
  if (plan.actions.size() != actions.size())
    return fail(ErrorCode::Internal,
                "the parts of a plan made a circle of actions; this is a defect in muster");
  return plan;
}

}  // namespace muster::lifecycle
