// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/node_change.h"

#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/status.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr int kMaxRounds = 4;                       ///< of plan and apply for one node
constexpr std::chrono::seconds kWaitForOthers{10};  ///< another controller works on the node
constexpr int kMaxWaitsForOthers = 360;
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

Async<std::optional<NodeProgress>> NodeChange::change(NodeName node) {
  if (!course_.isDeclared(node))
    co_return NodeProgress{RolloutNodeState::Skipped, kNotDeclared, {}, {}};
  NodeProgress progress = course_.record.of(node);
  std::optional<Plan> first;
  const auto& id = course_.record.rollout().id;
  if (progress.state == RolloutNodeState::Waiting) {
    Plan plan;
    CO_TRY(now, co_await prepare(node, plan));
    if (now.state == RolloutNodeState::Waiting) co_return std::nullopt;
    if (now.state != RolloutNodeState::Started) {
      course_.services.effective.revert(id, node);
      co_return now;
    }
    progress.state = RolloutNodeState::Started;
    progress.started_at = course_.services.clock.now();
    if (auto kept = course_.record.put(node, progress); !kept) {
      course_.services.effective.revert(id, node);
      co_return fail(std::move(kept).error());
    }
    course_.note(node, fmt::format("started, {} actions", plan.actions.size()));
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

Async<std::optional<NodeProgress>> NodeChange::revert(NodeName node) {
  if (!course_.isDeclared(node))
    co_return NodeProgress{RolloutNodeState::Returned, kNotDeclared, {}, {}};
  NodeProgress progress = course_.record.of(node);
  if (!course_.services.effective.affects(course_.record.rollout().id, node)) {
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
  CO_TRY_OK(course_.record.put(node, progress));
  course_.services.effective.revert(course_.record.rollout().id, node);
  CO_TRY_OK(forgetOtherFacets(node));
  CO_TRY(failed, co_await converge(node, std::nullopt));
  progress.state = failed.empty() ? RolloutNodeState::Returned : RolloutNodeState::RollbackFailed;
  progress.why = failed;
  co_return progress;
}

/// Looks while the node still is what it was, as when the plan was frozen; then changes it, in
/// memory only.
Async<NodeProgress> NodeChange::prepare(NodeName node, Plan& plan) {
  CO_TRY(facts, co_await observeWithPool(node));
  if (!facts || !reserveRoom(node, *facts)) co_return course_.record.of(node);
  course_.services.effective.change(course_.record.rollout().id, node);
  CO_TRY(made, planFor(node, *facts));
  plan = std::move(made);
  const auto skipped = [](std::string why) {
    return NodeProgress{RolloutNodeState::Skipped, std::move(why), {}, {}};
  };
  if (auto held = heldByPerson(*facts, node); !held.empty()) co_return skipped(std::move(held));
  if (auto beyond = beyondFrozen(plan, course_.record.frozen(node), false); !beyond.empty())
    co_return skipped("changed since the plan was frozen: " + beyond.front());
  for (const auto& action : plan.actions)
    if (!action.blocked.empty())
      co_return skipped(fmt::format("{} is blocked: {}", action.id, action.blocked));
  co_return NodeProgress{RolloutNodeState::Started, "", {}, {}};
}

/// Who was noted as out when its turn came was asked for no room. If it works, it needs some.
bool NodeChange::reserveRoom(const NodeName& node, const FactSet& facts) {
  if (!pools_.works(node, facts)) return true;
  course_.window->in(node);
  if (!course_.window->whyNot(node).empty()) return false;
  course_.window->out(node);
  return true;
}

/// A pool that is away for a while says nothing about the node: it is neither skipped nor taken
/// out.
Async<std::optional<FactSet>> NodeChange::observeWithPool(NodeName node) {
  const auto since = course_.services.clock.steady();
  for (bool first = true;; first = false) {
    std::set<Subject> only{Subject(node)};
    CO_TRY(facts, co_await course_.services.engine.observeNodes(std::move(only)));
    if (!pools_.poolIsUnknown(node, facts)) co_return std::optional<FactSet>(std::move(facts));
    course_.readOrders();
    if (course_.stopped()) co_return std::optional<FactSet>();
    if (course_.services.clock.steady() - since >= kNoRoomLimit) {
      course_.no_room_since = since;
      course_.stop_reason =
          fmt::format("the pool of {} has not answered for {} minutes; see `muster events {}`",
                      node.str(), kNoRoomLimit.count(), node.str());
      co_return std::optional<FactSet>();
    }
    if (first) course_.note(node, "its pool does not answer; it stays as it is until it does");
    co_await course_.services.clock.sleep(kWaitForOthers);
  }
}

Result<Plan> NodeChange::planFor(const NodeName& node, const FactSet& facts) const {
  TRY(policy, policyOf(course_.services.store, {Subject(node)}));
  if (!course_.record.rollout().wipe_reason.empty()) policy.wipe_allowed.insert(node);
  return makePlan(course_.services.effective.cluster(), facts, policy, course_.services.phases);
}

/// The wipe grant that the operator gave for the whole rollout, written down for this node at the
/// moment when it is used.
Result<void> NodeChange::grantWipe(const Plan& plan, const NodeName& node) {
  const auto& reason = course_.record.rollout().wipe_reason;
  const bool wipes = std::any_of(plan.actions.begin(), plan.actions.end(),
                                 [](const Action& a) { return a.disruption == Disruption::Wipe; });
  if (reason.empty() || !wipes) return {};
  TRY(open, course_.services.store.openIntentsOf(Subject(node)));
  for (const auto& intent : open)  // it has used its grant already
    if (intent.action.disruption == Disruption::Wipe) return {};
  course_.note(node,
               fmt::format("{}@{} allows it to be wiped once: {}", course_.record.rollout().user,
                           course_.record.rollout().host, reason));
  return course_.record.grantWipe(node, course_.services.clock.now());
}

Result<void> NodeChange::revokeWipe(const NodeName& node) {
  TRY(unused, course_.record.revokeWipe(node));
  if (unused) course_.note(node, "it was not wiped; the wipe grant is revoked");
  return {};
}

std::set<FacetName> NodeChange::facetsOf(const NodeName& node, const FactSet& facts) const {
  std::set<FacetName> out;
  for (const auto* phase : course_.services.phases)
    for (const auto& goal :
         phase->goals(course_.services.effective.cluster(), Subject(node), facts))
      out.insert(goal.facet.facet);
  return out;
}

Result<void> NodeChange::forgetOtherFacets(const NodeName& node) {
  TRY(known, course_.services.store.factsOf(Subject(node)));
  FactSet facts;
  for (auto& fact : known) facts.put(std::move(fact));
  const auto& id = course_.record.rollout().id;
  const bool forward = course_.record.rollout().direction == RolloutDirection::Forward;
  const auto mine = facetsOf(node, facts);
  forward ? course_.services.effective.revert(id, node)
          : course_.services.effective.change(id, node);
  const auto other = facetsOf(node, facts);
  forward ? course_.services.effective.change(id, node)
          : course_.services.effective.revert(id, node);
  std::vector<FacetName> old;
  std::set_difference(other.begin(), other.end(), mine.begin(), mine.end(),
                      std::back_inserter(old));
  if (old.empty()) return {};
  for (const auto& facet : old)
    TRY_OK(course_.services.store.clearFindings({Subject(node), facet}));
  return course_.services.store.forgetFacts(Subject(node), old);
}

Async<std::string> NodeChange::converge(NodeName node, std::optional<Plan> plan) {
  std::string left;
  int waits = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (!plan) {
      std::set<Subject> only{Subject(node)};
      CO_TRY(facts, co_await course_.services.engine.observeNodes(std::move(only)));
      CO_TRY(made, planFor(node, facts));
      std::erase_if(made.actions, [](const Action& action) {
        return action.facet.subject.isCluster();
      });  // not the rollout's work
      CO_TRY_OK(grantWipe(made, node));
      plan = std::move(made);
    }
    if (course_.record.rollout().direction ==
        RolloutDirection::Forward)  // a node that is tried again was not asked in prepare
      if (auto beyond = beyondFrozen(*plan, course_.record.frozen(node), true); !beyond.empty())
        co_return "changed since the plan was frozen: " + beyond.front();
    const bool nothing_left = plan->empty();
    left = nothing_left ? "" : plan->actions.front().id;
    if (nothing_left && round > 0) {  // the first round also ends what an earlier process has left:
                                      // open intents, claims
      CO_TRY(open, course_.services.store.openIntentsOf(Subject(node)));
      if (open.empty()) co_return std::string();
    }
    auto apply = course_.services.engine.apply(
        *std::exchange(plan, std::nullopt),  // an empty plan still closes open intents
        course_.services.worker);
    CO_TRY(report, co_await std::move(apply));
    if (!report.ok()) co_return problemsOf(report);
    if (report.held > 0) {
      if (++waits > kMaxWaitsForOthers)
        co_return "another controller works on it and does not end: " + problemsOf(report);
      co_await course_.services.clock.sleep(kWaitForOthers);
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
Async<std::string> NodeChange::heldByAPerson(NodeName node) {
  std::set<Subject> only{Subject(node)};
  CO_TRY(facts, co_await course_.services.engine.observeNodes(std::move(only)));
  CO_TRY(plan, planFor(node, facts));
  const bool only_pool = std::all_of(plan.actions.begin(), plan.actions.end(), [](const Action& a) {
    return a.facet.subject.isCluster() || a.facet.facet == kPool;
  });
  co_return only_pool ? heldByPerson(facts, node) : std::string();
}

Async<Measures> NodeChange::measure(NodeName node, WallTime since) {
  CO_TRY(facts, course_.services.store.factsOf(Subject(node)));
  co_return nodeMeasures(course_.services.store, Subject(node), facts, since);
}

}  // namespace muster::lifecycle
