// makePlan: goals of all phases as one graph, decided along its topological order.
//
// Steps: collect goals → link needs → order (cycles are found here) → decide what is unmet or re-made → guards (wipe, pool)
// and what they block, until nothing changes → emit actions, ordered again because drain and join add edges.
#include "inventory/hostlist.h"
#include "lifecycle/plan.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>

namespace muster::lifecycle {

namespace {

using Index = std::uint32_t;
constexpr Index kNone = ~Index{0};

/// One goal in the graph.
struct Vertex {
  Goal goal;
  Phase* phase = nullptr;
  Index subject = 0;
  const Fact* fact = nullptr;
  std::vector<Index> needs;
  std::vector<Index> waits;  ///< actions that must be done first: needs, seen through goals that are met
  bool after_pool = false;   ///< needs somebody's place in a pool, so no join waits for it
  bool acts = false;         ///< an action of the plan
  Index remade_by = kNone;   ///< the wiped or re-made goal that makes this one void
  std::string blocked;
};

struct SubjectState {
  Subject subject;
  bool selected = false;
  bool collected = false;
  bool drain = false;
  std::vector<Index> vertices;  ///< in the order of their needs
  Index pool = kNone;
};

/// Kahn's order with a fixed key for ties. Shorter than `count` when there is a circle.
std::vector<Index> topologicalOrder(const std::vector<std::vector<Index>>& needs, const std::vector<Index>& key) {
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

void sortUnique(std::vector<Index>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

class Planner {
 public:
  Planner(const inventory::Cluster& cluster, const FactSet& facts, const Policy& policy, const Phases& phases)
      : cluster_(cluster), facts_(facts), policy_(policy), phases_(phases) {}

  Result<Plan> make() {
    TRY_OK(collectSubjects());
    TRY_OK(collectGoals());
    TRY_OK(linkAndOrder());
    decide();
    block();
    return emit();
  }

 private:
  Result<void> collectSubjects();
  Result<void> collectGoalsOf(Index subject);
  Result<void> collectGoals();
  Index find(const FacetRef& facet) const;  ///< only before linkAndOrder is through
  Result<void> linkAndOrder();
  Error circle(const std::vector<Index>& order) const;
  void decide();
  void computeWaits();
  void block();
  void guardWipe(Vertex& vertex) const;
  bool guardPool(SubjectState& state);
  bool blockDisturbing(const SubjectState& state, const std::string& why);
  bool propagate();
  Result<Plan> emit();
  std::vector<std::vector<Index>> actionNeeds(const std::vector<Index>& slot_of, const std::vector<Index>& drain_slot, Index slots) const;
  Action actionOf(const Vertex& vertex) const;
  Action drainOf(const SubjectState& state) const;
  void recordFacts(Plan& plan) const;

  std::string idOf(const Vertex& vertex) const { return vertex.goal.facet.str(); }
  bool disturbs(const Vertex& vertex) const {
    return vertex.acts && vertex.goal.disruption != Disruption::None && vertex.goal.facet.facet.str() != kPoolFacet;
  }

  const inventory::Cluster& cluster_;
  const FactSet& facts_;
  const Policy& policy_;
  const Phases& phases_;
  std::vector<SubjectState> subjects_;
  std::unordered_map<std::string, Index> subject_index_;
  std::vector<Vertex> vertices_;  ///< by subject, then facet
  std::vector<Index> order_;      ///< vertices, each after those it needs
};

Result<void> Planner::collectSubjects() {
  subjects_.push_back({Subject::cluster(), true});
  std::vector<const std::string*> names;
  names.reserve(cluster_.nodes.size());
  for (const auto& node : cluster_.nodes) names.push_back(&node.name.str());
  std::stable_sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return inventory::naturalLess(*a, *b); });
  for (const auto* name : names) {
    auto subject = Subject(NodeName(*name));
    const bool selected = policy_.only.empty() || policy_.only.contains(subject);
    subjects_.push_back({std::move(subject), selected});
  }
  for (Index i = 0; i < subjects_.size(); ++i) subject_index_.emplace(subjects_[i].subject.str(), i);
  for (const auto& subject : policy_.only)
    if (!subject_index_.contains(subject.str()))
      return fail(ErrorCode::NotFound, fmt::format("the inventory has no node '{}'; `muster inventory show` lists them", subject.str()));
  return {};
}

Result<void> Planner::collectGoalsOf(Index index) {
  auto& state = subjects_[index];
  if (std::exchange(state.collected, true)) return {};
  for (Phase* phase : phases_) {
    for (auto& goal : phase->goals(cluster_, state.subject, facts_)) {
      if (goal.facet.subject != state.subject)
        return fail(ErrorCode::Internal,
                    fmt::format("phase {} answered the goal {} when asked for {}", phase->name(), goal.facet.str(), state.subject.str()));
      for (Index other : state.vertices)
        if (vertices_[other].goal.facet == goal.facet)
          return fail(ErrorCode::Internal, fmt::format("{} is claimed by the phases {} and {}", goal.facet.str(),
                                                       vertices_[other].phase->name(), phase->name()));
      Vertex vertex{std::move(goal), phase, index};
      if (vertex.goal.deadline.count() <= 0) vertex.goal.deadline = kDefaultDeadline;
      state.vertices.push_back(static_cast<Index>(vertices_.size()));
      vertices_.push_back(std::move(vertex));
    }
  }
  return {};
}

/// Goals of every subject of the plan, and of those that their needs lead to: a subject that the policy leaves out still
/// says whether what it must bring is there. Then vertices are numbered by (subject, facet), so that nothing below depends
/// on the order in which phases were given.
Result<void> Planner::collectGoals() {
  for (Index i = 0; i < subjects_.size(); ++i)
    if (subjects_[i].selected) TRY_OK(collectGoalsOf(i));
  for (Index i = 0; i < vertices_.size(); ++i) {  // grows
    for (std::size_t n = 0; n < vertices_[i].goal.needs.size(); ++n) {
      auto subject = subject_index_.find(vertices_[i].goal.needs[n].subject.str());
      if (subject != subject_index_.end()) TRY_OK(collectGoalsOf(subject->second));
    }
  }
  std::sort(vertices_.begin(), vertices_.end(), [](const Vertex& a, const Vertex& b) {
    return a.subject != b.subject ? a.subject < b.subject : a.goal.facet.facet < b.goal.facet.facet;
  });
  for (auto& state : subjects_) state.vertices.clear();
  for (Index i = 0; i < vertices_.size(); ++i) {
    auto& state = subjects_[vertices_[i].subject];
    state.vertices.push_back(i);
    if (vertices_[i].goal.facet.facet.str() == kPoolFacet) state.pool = i;
  }
  return {};
}

Index Planner::find(const FacetRef& facet) const {
  auto subject = subject_index_.find(facet.subject.str());
  if (subject == subject_index_.end()) return kNone;
  const auto& candidates = subjects_[subject->second].vertices;
  auto it = std::lower_bound(candidates.begin(), candidates.end(), facet.facet,
                             [this](Index i, const FacetName& name) { return vertices_[i].goal.facet.facet < name; });
  return it != candidates.end() && vertices_[*it].goal.facet.facet == facet.facet ? *it : kNone;
}

Result<void> Planner::linkAndOrder() {
  std::vector<std::vector<Index>> needs(vertices_.size());
  for (Index i = 0; i < vertices_.size(); ++i) {
    for (const auto& need : vertices_[i].goal.needs) {
      const Index target = find(need);
      if (target == kNone)
        return fail(ErrorCode::Internal, fmt::format("{} needs {}, which no phase has as a goal", idOf(vertices_[i]), need.str()));
      needs[i].push_back(target);
    }
    sortUnique(needs[i]);
    vertices_[i].needs = needs[i];
  }
  std::vector<Index> key(vertices_.size());
  std::iota(key.begin(), key.end(), Index{0});
  order_ = topologicalOrder(needs, key);
  if (order_.size() != vertices_.size()) return fail(circle(order_));
  std::vector<Index> position(vertices_.size());
  for (Index at = 0; at < order_.size(); ++at) position[order_[at]] = at;
  for (auto& state : subjects_)
    std::sort(state.vertices.begin(), state.vertices.end(), [&position](Index a, Index b) { return position[a] < position[b]; });
  return {};
}

/// Follows unordered needs until a goal comes up again; every goal left over has one.
Error Planner::circle(const std::vector<Index>& order) const {
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
  for (auto it = std::find(path.begin(), path.end(), at); it != path.end(); ++it) text += idOf(vertices_[*it]) + " needs ";
  return Error(ErrorCode::Internal, "goals depend on each other in a circle: " + text + idOf(vertices_[at]));
}

void Planner::decide() {
  for (Index i : order_) {
    auto& vertex = vertices_[i];
    for (Index need : vertex.needs)
      vertex.after_pool = vertex.after_pool || vertices_[need].after_pool || need == subjects_[vertices_[need].subject].pool;
    vertex.fact = facts_.find(vertex.goal.facet.subject, vertex.goal.facet.facet);
    const bool unmet = !vertex.fact || !matches(vertex.goal.want, vertex.fact->value);
    // What is on a disk dies with it; the place in the pool is not on the disk.
    if (vertex.goal.facet.facet.str() != kPoolFacet)
      for (Index need : vertex.needs) {
        const auto& other = vertices_[need];
        const bool wiped = other.acts && other.goal.disruption == Disruption::Wipe;
        if (other.subject == vertex.subject && (wiped || other.remade_by != kNone)) vertex.remade_by = wiped ? need : other.remade_by;
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
      if (!other.acts) vertex.waits.insert(vertex.waits.end(), other.waits.begin(), other.waits.end());
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
  if (!vertex.acts || vertex.goal.disruption != Disruption::Wipe || subject.isCluster() || policy_.wipe_allowed.contains(subject.node()))
    return;
  const auto installed = facts_.value(subject, FacetName(std::string(kInstalledFacet)));
  const auto pool = facts_.value(subject, FacetName(std::string(kPoolFacet)));
  const bool holds = installed && *installed != kNothingInstalled;
  const bool pooled = mayTakeJobs(pool);
  if (!holds && !pooled) return;
  std::string why = holds ? fmt::format("its disk holds '{}'", *installed) : std::string();
  if (pooled) why += holds ? " and it is in its pool" : "it is in its pool";
  vertex.blocked = fmt::format("{} would be wiped, but {}; {}", subject.str(), why, wipeAdvice(subject));
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
  const bool any = std::any_of(state.vertices.begin(), state.vertices.end(),
                               [this](Index i) { return disturbs(vertices_[i]) && vertices_[i].blocked.empty(); });
  const auto& name = state.subject.str();
  const auto pool = facts_.value(state.subject, FacetName(std::string(kPoolFacet)));
  bool changed = false;
  if (any && !pool && state.pool != kNone)
    changed = blockDisturbing(
        state, fmt::format("it is not known whether {} is in its pool; see `muster why {}` for why the pool did not answer", name, name));
  if (any && mayTakeJobs(pool) && state.pool == kNone)
    changed = blockDisturbing(
        state, fmt::format("{} is in a pool that the inventory does not declare; take it out by hand, or declare the pool", name));
  if (any && mayTakeJobs(pool) && state.pool != kNone) {
    auto blocked = std::find_if(state.vertices.begin(), state.vertices.end(),
                                [this](Index i) { return vertices_[i].acts && !vertices_[i].blocked.empty(); });
    if (blocked != state.vertices.end())
      changed = blockDisturbing(
          state, fmt::format("{} would leave its pool for a plan that cannot finish: {} is blocked", name, idOf(vertices_[*blocked])));
    else
      state.drain = true;
  }
  if (state.pool != kNone) {
    auto& join = vertices_[state.pool];
    if (state.drain) join.acts = true;
    if (was_drained && !state.drain) join.acts = !join.fact || !matches(join.goal.want, join.fact->value);
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
                             : fmt::format("needs {}, which is not met; {}", idOf(vertices_[wait]), vertices_[wait].blocked);
        changed = true;
        break;
      }
  }
  return changed;
}

/// Blocking one action can block others, and a node with a blocked action stays in its pool; blocks are only ever added,
/// so this ends.
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

Action Planner::actionOf(const Vertex& vertex) const {
  const auto& goal = vertex.goal;
  Action action;
  action.id = idOf(vertex);
  action.facet = goal.facet;
  action.phase = std::string(vertex.phase->name());
  action.from = vertex.fact ? vertex.fact->value : "";
  action.to = goal.want;
  action.reason = goal.why.empty() ? fmt::format("wanted by {}", vertex.phase->name()) : goal.why;
  if (vertex.remade_by != kNone) action.reason += fmt::format("; made again because {} wipes the disk", idOf(vertices_[vertex.remade_by]));
  if (subjects_[vertex.subject].drain && goal.facet.facet.str() == kPoolFacet) action.from = std::string(kPoolDrained);
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
      because += fmt::format("{}{} ({})", because.empty() ? "" : ", ", vertices_[i].goal.facet.facet.str(),
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

/// Needs between the slots of the plan: those that were computed, and the drain before everything that disturbs. There is
/// no circle: a drain needs nothing, and a join waits for nothing that needs a pool.
std::vector<std::vector<Index>> Planner::actionNeeds(const std::vector<Index>& slot_of, const std::vector<Index>& drain_slot,
                                                     Index slots) const {
  std::vector<std::vector<Index>> needs(slots);
  for (Index i : order_) {
    const auto& vertex = vertices_[i];
    if (slot_of[i] == kNone) continue;
    auto& list = needs[slot_of[i]];
    for (Index wait : vertex.waits)
      if (slot_of[wait] != kNone) list.push_back(slot_of[wait]);
    const Index drain = drain_slot[vertex.subject];
    if (drain != kNone && (disturbs(vertex) || i == subjects_[vertex.subject].pool)) list.push_back(drain);
    sortUnique(list);
  }
  return needs;
}

Result<Plan> Planner::emit() {
  computeWaits();
  std::vector<Index> slot_of(vertices_.size(), kNone), drain_slot(subjects_.size(), kNone), key;
  std::vector<Action> actions;
  // Keys are stretched by the subject's rank, so that a drain sorts just before every other action of its node.
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
  recordFacts(plan);
  plan.facts_digest = digestOf(plan.facts_used);
  const auto order = topologicalOrder(needs, key);
  if (order.size() != actions.size())
    return fail(ErrorCode::Internal, "drains and joins made a circle of actions; this is a defect in muster");
  for (Index slot : order) {
    for (Index need : needs[slot]) actions[slot].needs.push_back(actions[need].id);
    std::sort(actions[slot].needs.begin(), actions[slot].needs.end());
    plan.actions.push_back(actions[slot]);
  }
  return plan;
}

void Planner::recordFacts(Plan& plan) const {
  for (const auto& state : subjects_) {
    bool acts = false;
    for (Index i : state.vertices) {
      const auto& vertex = vertices_[i];
      if (!vertex.acts) continue;
      acts = true;
      plan.facts_used.emplace(vertex.goal.facet, vertex.fact ? vertex.fact->value : "");
      for (Index need : vertex.needs)
        plan.facts_used.emplace(vertices_[need].goal.facet, vertices_[need].fact ? vertices_[need].fact->value : "");
    }
    if (!acts) continue;
    for (auto& fact : facts_.of(state.subject)) plan.facts_used.insert_or_assign(FacetRef{fact.subject, fact.facet}, std::move(fact.value));
  }
}

}  // namespace

std::chrono::seconds drainDeadlineOf(const inventory::Cluster& cluster, const Subject& subject) {
  const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
  const auto profile = node ? cluster.profiles.find(node->profile) : cluster.profiles.end();
  if (profile == cluster.profiles.end()) return kDrainDeadline;
  const auto pool = cluster.pools.find(profile->second.pool);
  if (pool == cluster.pools.end() || !pool->second.drain.deadline_minutes) return kDrainDeadline;
  return std::chrono::minutes(*pool->second.drain.deadline_minutes) + kDrainGrace;
}

std::string wipeAdvice(const Subject& subject) {
  return fmt::format("if that is meant, allow it once: `muster wipe {} --reason TEXT`", subject.str());
}

Result<Plan> makePlan(const inventory::Cluster& cluster, const FactSet& facts, const Policy& policy, const Phases& phases) {
  return Planner(cluster, facts, policy, phases).make();
}

}  // namespace muster::lifecycle
