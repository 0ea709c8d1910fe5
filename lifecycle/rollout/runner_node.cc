// SPDX-License-Identifier: Apache-2.0
// One node of a rollout: out, changed, back; and what its pool says of everybody else.
#include "lifecycle/rollout/runner.h"

#include "base/async/await_all.h"
#include "base/async/deadline.h"
#include "inventory/model/node.h"
#include "lifecycle/executor/exception_boundary.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/status.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr int kMaxRounds = 4;                       ///< of plan and apply for one node
constexpr std::chrono::seconds kWaitForOthers{10};  ///< another controller works on the node
constexpr int kMaxWaitsForOthers = 360;
constexpr std::size_t kPoolPollsAtOnce = 16;
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

Task<void> RolloutRunner::runNode(NodeName node) {
  const bool forward = record_.rollout().direction == RolloutDirection::Forward;
  auto ended = co_await (forward ? changeNode(node) : revertNode(node));
  if (ended && !*ended) {  // nothing was done to it: another turn
    under_way_.erase(node);
    queue_.push_back(node);
    co_return;
  }
  if (ended) {
    auto& progress = **ended;
    const auto words = fmt::format("{}{}{}", toString(progress.state),
                                   progress.why.empty() ? "" : ": ", progress.why);
    if (progress.state == RolloutNodeState::Failed) ++failed_;
    auto taken = revokeWipe(node);  // before the record says that it is over
    auto kept = taken ? record_.put(node, std::move(progress)) : std::move(taken);
    if (kept) note(node, words);
    if (!kept && !error_) error_ = std::move(kept).error();
  } else if (!error_) {
    error_ = std::move(ended).error();
  }
  under_way_.erase(node);
  if (isDeclared(node)) updateWindow(node);
}

Async<std::optional<NodeProgress>> RolloutRunner::changeNode(NodeName node) {
  if (!isDeclared(node)) co_return NodeProgress{RolloutNodeState::Skipped, kNotDeclared, {}, {}};
  NodeProgress progress = record_.of(node);
  std::optional<Plan> first;
  const auto& id = record_.rollout().id;
  if (progress.state == RolloutNodeState::Waiting) {
    Plan plan;
    CO_TRY(now, co_await prepare(node, plan));
    if (now.state == RolloutNodeState::Waiting) co_return std::nullopt;
    if (now.state != RolloutNodeState::Started) {
      services_.effective.revert(id, node);
      co_return now;
    }
    progress.state = RolloutNodeState::Started;
    progress.started_at = services_.clock.now();
    if (auto kept = record_.put(node, progress); !kept) {
      services_.effective.revert(id, node);
      co_return fail(std::move(kept).error());
    }
    note(node, fmt::format("started, {} actions", plan.actions.size()));
    CO_TRY_OK(grantWipe(plan, node));
    first = std::move(plan);
  }
  CO_TRY_OK(forgetOtherFacets(node));
  CO_TRY(failed, co_await converge(node, std::move(first)));
  CO_TRY(after, co_await measure(node, progress.started_at));
  std::string held;
  if (!failed.empty()) {
    CO_TRY(by_whom, co_await heldByAPerson(node));
    held = std::move(by_whom);
  }
  progress.after = std::move(after);
  progress.state =
      failed.empty() || !held.empty() ? RolloutNodeState::Done : RolloutNodeState::Failed;
  progress.why = held.empty() ? failed : "changed and certified, but not in its pool: " + held;
  co_return progress;
}

Async<std::optional<NodeProgress>> RolloutRunner::revertNode(NodeName node) {
  if (!isDeclared(node)) co_return NodeProgress{RolloutNodeState::Returned, kNotDeclared, {}, {}};
  NodeProgress progress = record_.of(node);
  if (!services_.effective.affects(record_.rollout().id, node)) {
    progress.state = RolloutNodeState::RollbackFailed;
    progress.why =
        "the inventory itself was edited since, and takes precedence: change it there, then "
        "`muster apply`";
    co_return progress;
  }
  if (progress.state != RolloutNodeState::Returning &&
      progress.state != RolloutNodeState::Started) {
    CO_TRY(facts, co_await observeWithPool(node));
    if (!facts || !reserveRoom(node, *facts)) co_return std::nullopt;
  }
  progress.state = RolloutNodeState::Returning;
  progress.why.clear();
  CO_TRY_OK(record_.put(node, progress));
  services_.effective.revert(record_.rollout().id, node);
  CO_TRY_OK(forgetOtherFacets(node));
  CO_TRY(failed, co_await converge(node, std::nullopt));
  progress.state = failed.empty() ? RolloutNodeState::Returned : RolloutNodeState::RollbackFailed;
  progress.why = failed;
  co_return progress;
}

/// Looks while the node still is what it was, as when the plan was frozen; then changes it, in
/// memory only.
Async<NodeProgress> RolloutRunner::prepare(NodeName node, Plan& plan) {
  CO_TRY(facts, co_await observeWithPool(node));
  if (!facts || !reserveRoom(node, *facts)) co_return record_.of(node);
  services_.effective.change(record_.rollout().id, node);
  CO_TRY(made, planFor(node, *facts));
  plan = std::move(made);
  const auto skipped = [](std::string why) {
    return NodeProgress{RolloutNodeState::Skipped, std::move(why), {}, {}};
  };
  if (auto held = heldByPerson(*facts, node); !held.empty()) co_return skipped(std::move(held));
  if (auto beyond = beyondFrozen(plan, record_.frozen(node), false); !beyond.empty())
    co_return skipped("changed since the plan was frozen: " + beyond.front());
  for (const auto& action : plan.actions)
    if (!action.blocked.empty())
      co_return skipped(fmt::format("{} is blocked: {}", action.id, action.blocked));
  co_return NodeProgress{RolloutNodeState::Started, "", {}, {}};
}

/// Who was noted as out when its turn came was asked for no room. If it works, it needs some.
bool RolloutRunner::reserveRoom(const NodeName& node, const FactSet& facts) {
  if (!works(node, facts)) return true;
  window_->in(node);
  if (!window_->whyNot(node).empty()) return false;
  window_->out(node);
  return true;
}

/// A pool that is away for a while says nothing about the node: it is neither skipped nor taken
/// out.
Async<std::optional<FactSet>> RolloutRunner::observeWithPool(NodeName node) {
  const auto since = services_.clock.steady();
  for (bool first = true;; first = false) {
    std::set<Subject> only{Subject(node)};
    CO_TRY(facts, co_await services_.engine.observeNodes(std::move(only)));
    if (!poolIsUnknown(node, facts)) co_return std::optional<FactSet>(std::move(facts));
    readOrders();
    if (stopped()) co_return std::optional<FactSet>();
    if (services_.clock.steady() - since >= kNoRoomLimit) {
      no_room_since_ = since;
      stop_reason_ =
          fmt::format("the pool of {} has not answered for {} minutes; see `muster events {}`",
                      node.str(), kNoRoomLimit.count(), node.str());
      co_return std::optional<FactSet>();
    }
    if (first) note(node, "its pool does not answer; it stays as it is until it does");
    co_await services_.clock.sleep(kWaitForOthers);
  }
}

Result<Plan> RolloutRunner::planFor(const NodeName& node, const FactSet& facts) const {
  TRY(policy, policyOf(services_.store, {Subject(node)}));
  if (!record_.rollout().wipe_reason.empty()) policy.wipe_allowed.insert(node);
  return makePlan(services_.effective.cluster(), facts, policy, services_.phases);
}

/// The wipe grant that the operator gave for the whole rollout, written down for this node at the
/// moment when it is used.
Result<void> RolloutRunner::grantWipe(const Plan& plan, const NodeName& node) {
  const auto& reason = record_.rollout().wipe_reason;
  const bool wipes = std::any_of(plan.actions.begin(), plan.actions.end(),
                                 [](const Action& a) { return a.disruption == Disruption::Wipe; });
  if (reason.empty() || !wipes) return {};
  TRY(open, services_.store.openIntents());
  for (const auto& intent : open)  // it has used its grant already
    if (intent.action.facet.subject == Subject(node) &&
        intent.action.disruption == Disruption::Wipe)
      return {};
  note(node, fmt::format("{}@{} allows it to be wiped once: {}", record_.rollout().user,
                         record_.rollout().host, reason));
  return record_.grantWipe(node, services_.clock.now());
}

Result<void> RolloutRunner::revokeWipe(const NodeName& node) {
  TRY(unused, record_.revokeWipe(node));
  if (unused) note(node, "it was not wiped; the wipe grant is revoked");
  return {};
}

std::set<FacetName> RolloutRunner::facetsOf(const NodeName& node, const FactSet& facts) const {
  std::set<FacetName> out;
  for (const auto* phase : services_.phases)
    for (const auto& goal : phase->goals(services_.effective.cluster(), Subject(node), facts))
      out.insert(goal.facet.facet);
  return out;
}

Result<void> RolloutRunner::forgetOtherFacets(const NodeName& node) {
  TRY(known, services_.store.factsOf(Subject(node)));
  FactSet facts;
  for (auto& fact : known) facts.put(std::move(fact));
  const auto& id = record_.rollout().id;
  const bool forward = record_.rollout().direction == RolloutDirection::Forward;
  const auto mine = facetsOf(node, facts);
  forward ? services_.effective.revert(id, node) : services_.effective.change(id, node);
  const auto other = facetsOf(node, facts);
  forward ? services_.effective.change(id, node) : services_.effective.revert(id, node);
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
      CO_TRY_OK(grantWipe(made, node));
      plan = std::move(made);
    }
    if (record_.rollout().direction ==
        RolloutDirection::Forward)  // a node that is tried again was not asked in prepare
      if (auto beyond = beyondFrozen(*plan, record_.frozen(node), true); !beyond.empty())
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
Async<std::string> RolloutRunner::heldByAPerson(NodeName node) {
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
    for (const auto& goal : phase->goals(services_.effective.cluster(), subject, facts))
      if (goal.facet.facet == kPool) return true;
  return false;
}

void RolloutRunner::updateWindow(const NodeName& node) {
  auto known = services_.store.factsOf(Subject(node));
  FactSet facts;
  if (known)
    for (auto& fact : *known) facts.put(std::move(fact));
  const auto it = record_.progress().find(node);
  const bool failed =
      it != record_.progress().end() && (it->second.state == RolloutNodeState::Failed ||
                                         it->second.state == RolloutNodeState::RollbackFailed);
  const bool pooled = facts.value(Subject(node), kPool).has_value();
  const bool in = known && works(node, facts) && !(failed && !pooled);
  in ? window_->in(node) : window_->out(node);
}

/// Asks the pools about every node whose group has a ceiling. Somebody else may have taken nodes
/// out, or lost them.
Async<void> RolloutRunner::pollPools() {
  const auto now = services_.clock.steady();
  const std::chrono::steady_clock::duration every =
      under_way_.empty() ? kPoolPollWaiting : kPoolPoll;
  if (polling_ || (pools_polled_at_ && now - *pools_polled_at_ < every)) co_return Result<void>();
  polling_ = true;
  std::vector<NodeName> nodes;
  for (const auto& node : window_->watched())
    if (!under_way_.contains(node)) nodes.push_back(node);
  for (std::size_t from = 0; from < nodes.size(); from += kPoolPollsAtOnce) {
    std::vector<Task<void>> looks;
    for (std::size_t i = from; i < std::min(nodes.size(), from + kPoolPollsAtOnce); ++i)
      looks.push_back(pollPool(nodes[i]));
    co_await async::awaitAll(std::move(looks));
  }
  pools_polled_at_ = services_.clock.steady();
  polling_ = false;
  co_return Result<void>();
}

/// After a soak: a node that passed its gates and then left its pool speaks against the change.
Async<void> RolloutRunner::checkChangedNodes() {
  left_pool_.clear();
  for (const auto& [node, progress] : record_.progress()) {
    if (progress.state != RolloutNodeState::Done || !progress.why.empty() || !isDeclared(node))
      continue;
    co_await pollPool(node);
    CO_TRY(known, services_.store.factsOf(Subject(node)));
    FactSet facts;
    for (auto& fact : known) facts.put(std::move(fact));
    if (works(node, facts) || !heldByPerson(facts, node).empty()) continue;
    const auto pool = facts.value(Subject(node), kPool);
    left_pool_.push_back(fmt::format("{} is {} now; see `muster why {}`", node.str(),
                                     pool.value_or("in a state that its pool does not report"),
                                     node.str()));
  }
  if (error_) co_return fail(*error_);
  co_return Result<void>();
}

/// What the pool cannot say now counts as out: a ceiling is no ceiling when it rests on what was
/// true once.
Task<void> RolloutRunner::pollPool(NodeName node) {
  const Subject subject(node);
  FactSet facts;
  for (auto* phase : services_.phases) {
    const auto goals = phase->goals(services_.effective.cluster(), subject, facts);
    if (std::none_of(goals.begin(), goals.end(),
                     [](const Goal& goal) { return goal.facet.facet == kPool; }))
      continue;
    auto observe = catchExceptions(fmt::format("{} observing {}", phase->name(), subject.str()),
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
    if (auto stored = services_.store.putFacts(*seen); !stored && !error_) error_ = stored.error();
  }
  if (under_way_.contains(node)) co_return;  // it was started meanwhile
  const auto it = record_.progress().find(node);
  const bool failed =
      it != record_.progress().end() && (it->second.state == RolloutNodeState::Failed ||
                                         it->second.state == RolloutNodeState::RollbackFailed);
  const bool out = !works(node, facts) || (failed && !facts.value(subject, kPool));
  out ? window_->out(node) : window_->in(node);
}

}  // namespace muster::lifecycle
