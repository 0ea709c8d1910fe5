// SPDX-License-Identifier: Apache-2.0
// Scheduling of a plan.
//
// A subject's coroutine holds one of a bounded number of places while it works, and gives it back
// while it waits for an action of another subject. It runs its actions in the plan's order, which
// is topological over all subjects: the first unsettled action of the plan never waits for
// anything, so the run cannot lock up.
#include "lifecycle/executor/apply_run.h"

#include "base/async/await_all.h"
#include "base/async/deadline.h"
#include "base/io/crypto.h"
#include "base/limits.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "lifecycle/executor/exception_boundary.h"
#include "lifecycle/model/orphaned_operation.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>

namespace muster::lifecycle {

constexpr std::size_t kMaxIntentsLookedAt =
    256;  ///< the newest of a subject, to find those that another controller left open

std::shared_ptr<DisruptionBudget> makeDisruptionBudget(const inventory::Cluster& cluster,
                                                       Clock& clock) {
  return std::make_shared<DisruptionBudget>(clock, cluster.limits);
}

Async<ApplyReport> ApplyRun::run() {
  for (std::size_t i = 0; i < plan_.actions.size(); ++i) index_.emplace(plan_.actions[i].id, i);
  CO_TRY_OK(claims_.begin());
  CO_TRY(facts, services_.store.facts());
  facts_ = std::move(facts);
  std::vector<Intent> orphans;
  CO_TRY_OK(adoptIntents(orphans));
  CO_TRY_OK(openRequest());
  {
    using namespace asio::experimental::awaitable_operators;
    auto work = runAll(std::move(orphans));
    auto renewals = claims_.renewForever();
    auto both = std::move(work) || std::move(renewals);  // the renewals end with the work
    (void)co_await std::move(both);
  }
  co_await closeRequest();
  co_return std::move(report_);
}

Async<void> ApplyRun::runAll(std::vector<Intent> orphans) {
  std::map<Subject, std::vector<std::size_t>> by_subject;
  std::vector<Subject> subjects;  // in the order of their first action
  for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
    auto& steps = by_subject[plan_.actions[i].facet.subject];
    if (steps.empty()) subjects.push_back(plan_.actions[i].facet.subject);
    steps.push_back(i);
  }
  std::vector<Task<void>> looks, tasks;
  for (auto& intent : orphans) looks.push_back(endOrphan(std::move(intent)));
  co_await async::awaitAll(std::move(looks));
  for (const auto& subject : subjects) tasks.push_back(runSubject(std::move(by_subject[subject])));
  co_await async::awaitAll(std::move(tasks));
  co_return Result<void>();
}

// ---- who asked, and what became of it
// ----------------------------------------------------------------------------------

Result<void> ApplyRun::openRequest() {
  const auto& origin = services_.origin;
  request_ = Request{io::randomToken(9),
                     services_.clock.now(),
                     origin.user,
                     origin.host,
                     origin.command,
                     hash_,
                     "",
                     {}};
  TRY_OK(services_.store.openRequest(request_));
  std::string text = fmt::format("{} actions, plan {}", plan_.actions.size(), hash_.substr(0, 12));
  if (!origin.user.empty())
    text += fmt::format(", asked for by {}@{}: {}", origin.user, origin.host, origin.command);
  services_.emit(Event{0, {}, EventKind::PlanStarted, {}, "", text});
  return {};
}

Task<void> ApplyRun::closeRequest() {
  std::string words = fmt::format("{} done, {} failed, {} blocked, {} not started", report_.done,
                                  report_.failed, report_.blocked, report_.skipped);
  if (report_.held > 0) words += fmt::format(", {} left to other controllers", report_.held);
  if (auto closed = co_await services_.journal->write<void>(
          [id = request_.id, words, at = services_.clock.now()](Store& store) {
            return store.closeRequest(id, words, at);
          });
      !closed)
    logWarning("lifecycle", "how the request ended could not be stored: {}", closed.error().str());
  services_.emit(Event{0, {}, EventKind::PlanFinished, {}, "", words});
}

Task<std::string> ApplyRun::claimSubject(Subject subject) {
  auto claim = co_await claims_.claim(subject);
  if (!claim) co_return "it could not be claimed: " + claim.error().str();
  if (!claim->ours)
    co_return fmt::format("{} works on {}",
                          claim->holder.empty() ? "another controller" : claim->holder,
                          subject.str());
  if (claim->taken_from.empty()) co_return std::string();
  auto facts = services_.store.factsOf(subject);
  auto intents = services_.store.intentsOf(subject, kMaxIntentsLookedAt);
  const auto moved =
      facts ? changedFacts(plan_, subject, *facts) : std::vector<std::string>{facts.error().str()};
  if (!moved.empty() || !intents) {
    co_await claims_.release(subject);
    // Whether the last holder did it, and whether before or after the plan, nobody has written
    // down.
    co_return moved.empty()
        ? fmt::format("what {} has begun on {} could not be read: {}", claim->taken_from,
                      subject.str(), intents.error().str())
        : fmt::format(
              "{} is not as the plan has it any more: {} (before this run {} held it last); "
              "plan again",
              subject.str(), moved.front(), claim->taken_from);
  }
  std::erase_if(open_, [&subject](const auto& entry) {
    return entry.second.action.facet.subject == subject;
  });
  for (auto& intent : *intents)
    if (intent.state == IntentState::Open) open_.emplace(intent.action.id, std::move(intent));
  co_return std::string();
}

/// Sorts open intents of earlier runs: of an action of this plan (taken up), not wanted any more
/// (orphans), of subjects that this plan leaves out (not touched).
Result<void> ApplyRun::adoptIntents(std::vector<Intent>& orphans) {
  TRY(intents, services_.store.openIntents());
  for (auto& intent : intents) {
    const auto& subject = intent.action.facet.subject;
    const auto& only = plan_.policy.only;
    if (!only.empty() && !subject.isCluster() && !only.contains(subject)) continue;
    const bool planned = index_.contains(intent.action.id) && !open_.contains(intent.action.id);
    const auto& intents_to_end = plan_.policy.intents_to_end;
    if (!planned && intents_to_end && !intents_to_end->contains(intent.action.id)) continue;
    if (planned)
      open_.emplace(intent.action.id, std::move(intent));
    else
      orphans.push_back(std::move(intent));
  }
  return {};
}

/// The plan does not name its action: it was finished and only the journal is behind, or nobody
/// wants it now.
Task<void> ApplyRun::endOrphan(Intent intent) {
  const Subject subject = intent.action.facet.subject;
  auto claim = co_await claims_.claim(subject);
  if (!claim || !claim->ours) {  // its holder ends what it began
    ++report_.held;
    co_return;
  }
  co_await verifyOrphan(std::move(intent));
  co_await claims_.release(subject);
}

Task<void> ApplyRun::verifyOrphan(Intent intent) {
  Phase* phase = services_.phase(intent.action.phase);
  IntentState state = IntentState::Abandoned;
  std::string outcome = "no goal wants it any more";
  if (phase) {
    auto read = co_await withDeadline(
        services_.clock, limitHere(services_.clock, kVerifyDeadline),
        "re-reading " + intent.action.facet.str(),
        catchExceptions(fmt::format("{} verifying {}", phase->name(), intent.action.id),
                        phase->verify(intent.action)));
    if (!read) {  // not known yet: the next run looks again
      services_.emit(Event{
          0,
          {},
          EventKind::Note,
          intent.action.facet.subject,
          intent.action.id,
          "an unfinished action of an earlier run could not be verified: " + read.error().str()});
      co_return;
    }
    std::erase_if(*read, [](const Fact& fact) { return fact.value.empty(); });
    if (auto stored = co_await services_.journal->write<void>(
            [facts = *read](Store& store) { return store.putFacts(facts); });
        !stored)
      co_return;
    for (auto& fact : *read) {
      if (fact.subject == intent.action.facet.subject && fact.facet == intent.action.facet.facet &&
          matches(intent.action.to, fact.value)) {
        state = IntentState::Done;
        outcome = "it was finished before muster stopped";
      }
      facts_.put(std::move(fact));
    }
  }
  const auto left = state == IntentState::Abandoned
                        ? orphanedOperationOf(intent, services_.clock.now())
                        : std::nullopt;
  // A plan of a few steps says nothing about the rest: what an earlier attempt has found wrong
  // there is wrong still. Of a whole plan, what it leaves out is over, and nobody would ever clear
  // that. What others have found is over when the facet is met.
  const bool over = state == IntentState::Done || !plan_.policy.intents_to_end ||
                    intent.action.id.ends_with(kDrainSuffix);
  if (auto closed = co_await services_.journal->write<void>(
          [id = intent.id, facet = intent.action.facet, source = engineSource(intent.action.phase),
           state, outcome, left, over, at = services_.clock.now()](Store& store) -> Result<void> {
            if (left) TRY_OK(store.putFacts(std::vector<Fact>(1, *left)));
            if (state == IntentState::Done) TRY_OK(store.clearFindings(facet));
            if (over)
              for (const auto& whose : {source, std::string()})
                TRY_OK(store.clearFindingsOf(facet, whose));
            return store.closeIntent(id, state, outcome, at);
          });
      closed)
    services_.emit(Event{0,
                         {},
                         state == IntentState::Done ? EventKind::ActionDone : EventKind::Note,
                         intent.action.facet.subject,
                         intent.action.id,
                         fmt::format("{}: {}", toString(state), outcome)});
}

Task<void> ApplyRun::runSubject(std::vector<std::size_t> steps) {
  co_await slots_.acquire();
  std::exception_ptr cancelled;
  try {
    co_await runSteps(std::move(steps));
  } catch (...) {
    cancelled = std::current_exception();
  }
  slots_.release();
  if (cancelled) std::rethrow_exception(cancelled);
}

Task<void> ApplyRun::runSteps(std::vector<std::size_t> steps) {
  std::string stopped_by;
  const auto others = co_await claimSubject(plan_.actions[steps.front()].facet.subject);
  for (std::size_t index : steps) {
    const auto& action = plan_.actions[index];
    if (!others.empty()) {
      finishStep(index, StepState::Held, index == steps.front() ? others : "");
      continue;
    }
    if (!stopped_by.empty()) {
      finishStep(index, StepState::Skipped,
                 fmt::format("not started, because {} failed", stopped_by));
      continue;
    }
    if (!action.blocked.empty()) {
      services_.emit(
          Event{0, {}, EventKind::ActionBlocked, action.facet.subject, action.id, action.blocked});
      finishStep(index, StepState::Blocked, action.blocked);
      continue;
    }
    auto missing = co_await awaitNeeds(index);
    if (!missing.why.empty()) {
      finishStep(index, missing.held ? StepState::Held : StepState::Skipped, missing.why);
      continue;
    }
    const bool go_on = co_await runStep(index, steps.front());
    if (!go_on) stopped_by = action.id;
  }
  if (!others.empty()) co_return;
  co_await claims_.release(plan_.actions[steps.front()].facet.subject);
}

/// Waits until every need is settled. Answers why the action cannot start; empty: it can.
Task<ApplyRun::Missing> ApplyRun::awaitNeeds(std::size_t index) {
  const auto& action = plan_.actions[index];
  for (const auto& need : action.needs) {
    auto found = index_.find(need);
    if (found == index_.end())
      co_return Missing{
          fmt::format("not started, because the plan lacks {}, which it needs; plan again", need)};
    auto& other = steps_[found->second];
    if (found->second >= index && plan_.actions[found->second].facet.subject ==
                                      action.facet.subject)  // it would wait for ever
      co_return Missing{fmt::format(
          "not started, because the plan has {}, which it needs, behind it; plan again", need)};
    if (!other.finished.isSet()) {
      services_.emit(Event{
          0, {}, EventKind::ActionWaiting, action.facet.subject, action.id, "waits for " + need});
      slots_.release();
      co_await other.finished.wait();
      co_await slots_.acquire();
    }
    if (other.state != StepState::Done)
      co_return Missing{fmt::format("not started, because {} is not done", need),
                        other.state == StepState::Held};
  }
  co_return Missing{};
}

AdaptiveSemaphore* ApplyRun::budgetOf(const Action& action) {
  if (action.facet.subject.isCluster() || open_.contains(action.id))
    return nullptr;  // what is under way is not stopped
  auto& budget = *services_.disruption_budget;
  return action.disruption == Disruption::Wipe    ? &budget.wipes
         : action.disruption == Disruption::Reset ? &budget.resets
                                                  : nullptr;
}

Task<ActionResult> ApplyRun::runAction(std::size_t index) {
  const auto& action = plan_.actions[index];
  std::optional<Intent> open;
  if (auto found = open_.find(action.id); found != open_.end()) open = found->second;
  Intent blank;
  blank.plan_hash = hash_;
  blank.request = request_.id;
  ActionRun run(services_, claims_, facts_, std::move(blank), action, std::move(open));
  auto end = co_await run.run();
  co_return end;
}

/// Answers whether the subject goes on. `rank`: of the subject. Who stands first in the plan goes
/// first at every budget: nodes that have begun get to their end, instead of all of them getting
/// half-way.
Task<bool> ApplyRun::runStep(std::size_t index, std::size_t rank) {
  auto* budget = budgetOf(plan_.actions[index]);
  if (budget) {
    co_await budget->acquire(rank);
  }
  std::exception_ptr called_off;
  ActionResult end;
  try {
    end = co_await runAction(index);
  } catch (...) {
    called_off = std::current_exception();
  }
  if (budget && called_off) budget->abandon();
  if (budget && !called_off) budget->release(end.status != ActionStatus::Failed);
  if (called_off) std::rethrow_exception(called_off);
  switch (end.status) {
    case ActionStatus::Done:
      finishStep(index, StepState::Done, "");
      break;
    case ActionStatus::Failed:
      finishStep(index, StepState::Failed, end.why);
      break;
    case ActionStatus::Blocked:
      finishStep(index, StepState::Blocked, end.why);
      break;
  }
  co_return end.status != ActionStatus::Failed;
}

void ApplyRun::finishStep(std::size_t index, StepState state, const std::string& why) {
  const auto& action = plan_.actions[index];
  switch (state) {
    case StepState::Done:
      ++report_.done;
      break;
    case StepState::Failed:
      ++report_.failed;
      break;
    case StepState::Blocked:
      ++report_.blocked;
      break;
    case StepState::Skipped:
      ++report_.skipped;
      break;
    case StepState::Held:
      ++report_.held;
      break;
    case StepState::Waiting:
      break;
  }
  if (state != StepState::Done && !why.empty()) report_.problems.push_back(action.id + ": " + why);
  steps_[index].state = state;
  steps_[index].finished.set();
}

}  // namespace muster::lifecycle
