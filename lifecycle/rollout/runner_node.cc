// SPDX-License-Identifier: Apache-2.0
// One node of a rollout: out, changed, back; and what its pool says of everybody else.
#include "lifecycle/rollout/runner.h"

#include "base/async/coordinate.h"
#include "base/async/deadline.h"
#include "lifecycle/executor/exception_boundary.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/status.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr int kMaxRounds = 4;                       ///< of plan and apply for one node
constexpr std::chrono::seconds kWaitForOthers{10};  ///< another controller works on the node
constexpr int kMaxWaitsForOthers = 360;
constexpr std::size_t kPoolLooksAtOnce = 16;
constexpr std::size_t kMaxProblemsTold = 3;

constexpr const char* kNotDeclared = "it is no longer in the inventory";

const FacetName kPool{std::string(kPoolFacet)};

std::string problemsOf(const ApplyReport& report) {
  std::string out;
  for (std::size_t i = 0; i < report.problems.size() && i < kMaxProblemsTold; ++i)
    out += (i == 0 ? "" : "; ") + report.problems[i];
  if (report.problems.size() > kMaxProblemsTold)
    out += fmt::format("; and {} more", report.problems.size() - kMaxProblemsTold);
  return out.empty() ? "it did not say why" : out;
}

}  // namespace

Task<void> RolloutRunner::carry(NodeName node) {
  const bool forward = book_.rollout().way == RolloutWay::Forward;
  auto ended = co_await (forward ? carryForward(node) : carryBack(node));
  if (ended && !*ended) {  // nothing was done to it: another turn
    under_way_.erase(node);
    queue_.push_back(node);
    co_return;
  }
  if (ended) {
    auto& progress = **ended;
    const auto words = fmt::format("{}{}{}", toString(progress.state),
                                   progress.why.empty() ? "" : ": ", progress.why);
    if (progress.state == NodeState::Failed) ++failed_;
    auto taken = takeBackWipe(node);  // before the book says that it is over
    auto kept = taken ? book_.put(node, std::move(progress)) : std::move(taken);
    if (kept) say(node, words);
    if (!kept && !trouble_) trouble_ = std::move(kept).error();
  } else if (!trouble_) {
    trouble_ = std::move(ended).error();
  }
  under_way_.erase(node);
  if (isDeclared(node)) settleWindow(node);
}

Async<std::optional<NodeProgress>> RolloutRunner::carryForward(NodeName node) {
  if (!isDeclared(node)) co_return NodeProgress{NodeState::Skipped, kNotDeclared, {}, {}};
  NodeProgress progress = book_.of(node);
  std::optional<Plan> first;
  const auto& id = book_.rollout().id;
  if (progress.state == NodeState::Waiting) {
    Plan plan;
    CO_TRY(now, co_await prepare(node, plan));
    if (now.state == NodeState::Waiting) co_return std::nullopt;
    if (now.state != NodeState::Started) {
      services_.live.uncross(id, node);
      co_return now;
    }
    progress.state = NodeState::Started;
    progress.started_at = services_.clock.now();
    if (auto kept = book_.put(node, progress); !kept) {
      services_.live.uncross(id, node);
      co_return fail(std::move(kept).error());
    }
    say(node, fmt::format("started, {} actions", plan.actions.size()));
    CO_TRY_OK(allowWipe(plan, node));
    first = std::move(plan);
  }
  CO_TRY_OK(forgetTheOther(node));
  CO_TRY(failed, co_await converge(node, std::move(first)));
  CO_TRY(after, co_await measure(node, progress.started_at));
  std::string held;
  if (!failed.empty()) {
    CO_TRY(by_whom, co_await leftToAPerson(node));
    held = std::move(by_whom);
  }
  progress.after = std::move(after);
  progress.state = failed.empty() || !held.empty() ? NodeState::Done : NodeState::Failed;
  progress.why = held.empty() ? failed : "changed and certified, but out of its pool: " + held;
  co_return progress;
}

Async<std::optional<NodeProgress>> RolloutRunner::carryBack(NodeName node) {
  if (!isDeclared(node)) co_return NodeProgress{NodeState::Returned, kNotDeclared, {}, {}};
  NodeProgress progress = book_.of(node);
  if (!services_.live.concerns(book_.rollout().id, node)) {
    progress.state = NodeState::Stuck;
    progress.why =
        "the inventory itself was edited since, and is the later word: change it there, then "
        "`muster apply`";
    co_return progress;
  }
  if (progress.state != NodeState::Returning && progress.state != NodeState::Started) {
    CO_TRY(facts, co_await lookWithPool(node));
    if (!facts || !takesItsPlace(node, *facts)) co_return std::nullopt;
  }
  progress.state = NodeState::Returning;
  progress.why.clear();
  CO_TRY_OK(book_.put(node, progress));
  services_.live.uncross(book_.rollout().id, node);
  CO_TRY_OK(forgetTheOther(node));
  CO_TRY(failed, co_await converge(node, std::nullopt));
  progress.state = failed.empty() ? NodeState::Returned : NodeState::Stuck;
  progress.why = failed;
  co_return progress;
}

/// Looks while the node still is what it was, as when the plan was frozen; then lets it cross, in
/// memory only.
Async<NodeProgress> RolloutRunner::prepare(NodeName node, Plan& plan) {
  CO_TRY(facts, co_await lookWithPool(node));
  if (!facts || !takesItsPlace(node, *facts)) co_return book_.of(node);
  services_.live.cross(book_.rollout().id, node);
  CO_TRY(made, planFor(node, *facts));
  plan = std::move(made);
  const auto skipped = [](std::string why) {
    return NodeProgress{NodeState::Skipped, std::move(why), {}, {}};
  };
  if (auto held = heldByPerson(*facts, node); !held.empty()) co_return skipped(std::move(held));
  if (auto beyond = beyondFrozen(plan, book_.frozen(node), false); !beyond.empty())
    co_return skipped("changed since the plan was frozen: " + beyond.front());
  for (const auto& action : plan.actions)
    if (!action.blocked.empty())
      co_return skipped(fmt::format("{} is blocked: {}", action.id, action.blocked));
  co_return NodeProgress{NodeState::Started, "", {}, {}};
}

/// Who was noted as out when its turn came was asked for no room. If it works, it needs some.
bool RolloutRunner::takesItsPlace(const NodeName& node, const FactSet& facts) {
  if (!works(node, facts)) return true;
  window_->in(node);
  if (!window_->whyNot(node).empty()) return false;
  window_->out(node);
  return true;
}

/// A pool that is away for a while says nothing about the node: it is neither skipped nor taken
/// out.
Async<std::optional<FactSet>> RolloutRunner::lookWithPool(NodeName node) {
  const auto since = services_.clock.steady();
  for (bool first = true;; first = false) {
    std::set<Subject> only{Subject(node)};
    CO_TRY(facts, co_await services_.engine.observeNodes(std::move(only)));
    if (!poolIsUnknown(node, facts)) co_return std::optional<FactSet>(std::move(facts));
    lookAtOrders();
    if (stopped()) co_return std::optional<FactSet>();
    if (services_.clock.steady() - since >= kNoRoomLimit) {
      no_room_since_ = since;
      stop_ = fmt::format("the pool of {} has not answered for {} minutes; see `muster events {}`",
                          node.str(), kNoRoomLimit.count(), node.str());
      co_return std::optional<FactSet>();
    }
    if (first) say(node, "its pool does not answer; it stays as it is until it does");
    co_await services_.clock.sleep(kWaitForOthers);
  }
}

Result<Plan> RolloutRunner::planFor(const NodeName& node, const FactSet& facts) const {
  TRY(policy, policyOf(services_.store, {Subject(node)}));
  if (!book_.rollout().wipe_reason.empty()) policy.wipe_allowed.insert(node);
  return makePlan(services_.live.cluster(), facts, policy, services_.phases);
}

/// The leave that the operator gave for the whole rollout, written down for this node at the moment
/// when it is used.
Result<void> RolloutRunner::allowWipe(const Plan& plan, const NodeName& node) {
  const auto& reason = book_.rollout().wipe_reason;
  const bool wipes = std::any_of(plan.actions.begin(), plan.actions.end(),
                                 [](const Action& a) { return a.disruption == Disruption::Wipe; });
  if (reason.empty() || !wipes) return {};
  TRY(open, services_.store.openIntents());
  for (const auto& intent : open)  // it has used its leave already
    if (intent.action.facet.subject == Subject(node) &&
        intent.action.disruption == Disruption::Wipe)
      return {};
  say(node, fmt::format("{}@{} allows it to be wiped once: {}", book_.rollout().user,
                        book_.rollout().host, reason));
  return book_.allowWipe(node, services_.clock.now());
}

Result<void> RolloutRunner::takeBackWipe(const NodeName& node) {
  TRY(unused, book_.takeBackWipe(node));
  if (unused) say(node, "it was not wiped; the leave for that is taken back");
  return {};
}

std::set<FacetName> RolloutRunner::facetsOf(const NodeName& node, const FactSet& facts) const {
  std::set<FacetName> out;
  for (const auto* phase : services_.phases)
    for (const auto& goal : phase->goals(services_.live.cluster(), Subject(node), facts))
      out.insert(goal.facet.facet);
  return out;
}

Result<void> RolloutRunner::forgetTheOther(const NodeName& node) {
  TRY(known, services_.store.factsOf(Subject(node)));
  FactSet facts;
  for (auto& fact : known) facts.put(std::move(fact));
  const auto& id = book_.rollout().id;
  const bool forward = book_.rollout().way == RolloutWay::Forward;
  const auto mine = facetsOf(node, facts);
  forward ? services_.live.uncross(id, node) : services_.live.cross(id, node);
  const auto other = facetsOf(node, facts);
  forward ? services_.live.cross(id, node) : services_.live.uncross(id, node);
  std::vector<FacetName> old;
  std::set_difference(other.begin(), other.end(), mine.begin(), mine.end(),
                      std::back_inserter(old));
  if (old.empty()) return {};
  for (const auto& facet : old) TRY_OK(services_.store.clearFindings({Subject(node), facet}));
  return services_.store.forgetFacts(Subject(node), old);
}

Async<std::string> RolloutRunner::converge(NodeName node, std::optional<Plan> plan) {
  std::string left;
  int waits = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (!plan) {
      std::set<Subject> only{Subject(node)};
      CO_TRY(facts, co_await services_.engine.observeNodes(std::move(only)));
      CO_TRY(made, planFor(node, facts));
      std::erase_if(made.actions, [](const Action& action) {
        return action.facet.subject.isCluster();
      });  // not the rollout's work
      CO_TRY_OK(allowWipe(made, node));
      plan = std::move(made);
    }
    if (book_.rollout().way ==
        RolloutWay::Forward)  // a node that is tried again was not asked in prepare
      if (auto beyond = beyondFrozen(*plan, book_.frozen(node), true); !beyond.empty())
        co_return "changed since the plan was frozen: " + beyond.front();
    const bool nothing_left = plan->empty();
    left = nothing_left ? "" : plan->actions.front().id;
    if (nothing_left && round > 0) {  // the first round also ends what an earlier process has left:
                                      // open intents, claims
      CO_TRY(open, services_.store.openIntents());
      if (std::none_of(open.begin(), open.end(), [&node](const Intent& i) {
            return i.action.facet.subject == Subject(node);
          }))
        co_return std::string();
    }
    auto apply = services_.engine.apply(
        *std::exchange(plan, std::nullopt));  // an empty plan still closes open intents
    CO_TRY(report, co_await std::move(apply));
    if (!report.ok()) co_return problemsOf(report);
    if (report.held > 0) {
      if (++waits > kMaxWaitsForOthers)
        co_return "another controller works on it and does not end: " + problemsOf(report);
      co_await services_.clock.sleep(kWaitForOthers);
      --round;
      continue;
    }
    if (nothing_left) co_return std::string();
  }
  co_return fmt::format("it is still not as it should be after {} rounds: {}; see `muster why {}`",
                        kMaxRounds, left, node.str());
}

/// The change is done and proven, only the pool is left, and muster does not undo what a person did
/// there.
Async<std::string> RolloutRunner::leftToAPerson(NodeName node) {
  std::set<Subject> only{Subject(node)};
  CO_TRY(facts, co_await services_.engine.observeNodes(std::move(only)));
  CO_TRY(plan, planFor(node, facts));
  const bool only_pool = std::all_of(plan.actions.begin(), plan.actions.end(), [](const Action& a) {
    return a.facet.subject.isCluster() || a.facet.facet == kPool;
  });
  co_return only_pool ? heldByPerson(facts, node) : std::string();
}

Async<Measures> RolloutRunner::measure(NodeName node, WallTime since) {
  CO_TRY(facts, services_.store.factsOf(Subject(node)));
  co_return nodeMeasures(services_.store, Subject(node), facts, since);
}

// ---- who works
// ---------------------------------------------------------------------------------------------------------

bool RolloutRunner::works(const NodeName& node, const FactSet& facts) const {
  if (const auto pool = facts.value(Subject(node), kPool)) return *pool == kPoolIn;
  return !poolIsUnknown(node, facts);  // nobody can say: it counts as out
}

bool RolloutRunner::poolIsUnknown(const NodeName& node, const FactSet& facts) const {
  const Subject subject(node);
  if (facts.value(subject, kPool)) return false;
  for (const auto* phase : services_.phases)
    for (const auto& goal : phase->goals(services_.live.cluster(), subject, facts))
      if (goal.facet.facet == kPool) return true;
  return false;
}

void RolloutRunner::settleWindow(const NodeName& node) {
  auto known = services_.store.factsOf(Subject(node));
  FactSet facts;
  if (known)
    for (auto& fact : *known) facts.put(std::move(fact));
  const auto it = book_.progress().find(node);
  const bool failed = it != book_.progress().end() && (it->second.state == NodeState::Failed ||
                                                       it->second.state == NodeState::Stuck);
  const bool pooled = facts.value(Subject(node), kPool).has_value();
  const bool in = known && works(node, facts) && !(failed && !pooled);
  in ? window_->in(node) : window_->out(node);
}

/// Asks the pools about every node whose group has a ceiling. Somebody else may have taken nodes
/// out, or lost them.
Async<void> RolloutRunner::lookAtPools() {
  const auto now = services_.clock.steady();
  const std::chrono::steady_clock::duration every =
      under_way_.empty() ? kLookAtPoolsWaiting : kLookAtPools;
  if (looking_ || (looked_at_pools_ && now - *looked_at_pools_ < every)) co_return Result<void>();
  looking_ = true;
  std::vector<NodeName> nodes;
  for (const auto& node : window_->watched())
    if (!under_way_.contains(node)) nodes.push_back(node);
  for (std::size_t from = 0; from < nodes.size(); from += kPoolLooksAtOnce) {
    std::vector<Task<void>> looks;
    for (std::size_t i = from; i < std::min(nodes.size(), from + kPoolLooksAtOnce); ++i)
      looks.push_back(lookAtPool(nodes[i]));
    co_await async::awaitAll(std::move(looks));
  }
  looked_at_pools_ = services_.clock.steady();
  looking_ = false;
  co_return Result<void>();
}

/// After a soak: a node that passed its gates and then left its pool speaks against the change.
Async<void> RolloutRunner::lookAtChanged() {
  fell_out_.clear();
  for (const auto& [node, progress] : book_.progress()) {
    if (progress.state != NodeState::Done || !progress.why.empty() || !isDeclared(node)) continue;
    co_await lookAtPool(node);
    CO_TRY(known, services_.store.factsOf(Subject(node)));
    FactSet facts;
    for (auto& fact : known) facts.put(std::move(fact));
    if (works(node, facts) || !heldByPerson(facts, node).empty()) continue;
    const auto pool = facts.value(Subject(node), kPool);
    fell_out_.push_back(fmt::format("{} is {} now; see `muster why {}`", node.str(),
                                    pool.value_or("in no state that its pool can tell"),
                                    node.str()));
  }
  if (trouble_) co_return fail(*trouble_);
  co_return Result<void>();
}

/// What the pool cannot say now counts as out: a ceiling is no ceiling when it rests on what was
/// true once.
Task<void> RolloutRunner::lookAtPool(NodeName node) {
  const Subject subject(node);
  FactSet facts;
  for (auto* phase : services_.phases) {
    const auto goals = phase->goals(services_.live.cluster(), subject, facts);
    if (std::none_of(goals.begin(), goals.end(),
                     [](const Goal& goal) { return goal.facet.facet == kPool; }))
      continue;
    auto observe = contained(fmt::format("{} observing {}", phase->name(), subject.str()),
                             phase->observe(subject));
    auto seen = co_await withDeadline(services_.clock, limitHere(services_.clock, kObserveDeadline),
                                      "asking the pool about " + subject.str(), std::move(observe));
    if (!seen) continue;
    std::erase_if(*seen, [&](const Fact& fact) {
      return fact.subject != subject || fact.facet != kPool || fact.value.empty();
    });
    for (auto& fact : *seen) {
      if (fact.observed_at == WallTime{}) fact.observed_at = services_.clock.now();
      facts.put(fact);
    }
    if (auto stored = services_.store.putFacts(*seen); !stored && !trouble_)
      trouble_ = stored.error();
  }
  if (under_way_.contains(node)) co_return;  // it was started meanwhile
  const auto it = book_.progress().find(node);
  const bool failed = it != book_.progress().end() && (it->second.state == NodeState::Failed ||
                                                       it->second.state == NodeState::Stuck);
  const bool out = !works(node, facts) || (failed && !facts.value(subject, kPool));
  out ? window_->out(node) : window_->in(node);
}

}  // namespace muster::lifecycle
