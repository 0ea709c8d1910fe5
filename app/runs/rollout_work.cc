// SPDX-License-Identifier: Apache-2.0
#include "app/runs/rollout_work.h"

#include "app/runs/rollout_plans.h"
#include "app/runs/run_change.h"
#include "app/runs/run_policy.h"
#include "app/runs/run_scope.h"
#include "fabric/topology/leaves.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "lifecycle/rollout/overlay.h"
#include "lifecycle/rollout/runner.h"

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

namespace {

constexpr std::chrono::seconds kWindowIsKnown{5};  ///< each node of a wave asks

std::string reasonsOf(const RolloutRecord& record) {
  std::string out;
  for (const auto& reason : record.rollout().reasons) out += (out.empty() ? "" : "; ") + reason;
  return out;
}

std::size_t countOf(const RolloutRecord& record, std::initializer_list<RolloutNodeState> states) {
  std::size_t out = 0;
  for (const auto state : states) out += record.count(state);
  return out;
}

/// Undoing begins with the first node that is taken back.
bool hasBegun(const Run& run, const Rollout& rollout) {
  return !run.rollout.back || rollout.direction == RolloutDirection::Back;
}

RolloutDirection directionOf(const Run& run, const Rollout& rollout) {
  return run.rollout.back ? RolloutDirection::Back : rollout.direction;
}

}  // namespace

Result<void> prepareRolloutToGoOn(const RunWork& work, const Run& run) {
  TRY(listed, isListed(work.store, run.rollout.id));
  if (!listed) return {};
  TRY(record, RolloutRecord::open(work.store, run.rollout.id));
  const auto& rollout = record.rollout();
  const bool stands = rollout.isOpen() && rollout.state != RolloutState::Running;
  if (!stands || !hasBegun(run, rollout)) return {};
  if (rollout.accepted_by.empty()) TRY_OK(prepareResume(record, ""));
  return record.takeOver(directionOf(run, record.rollout()));
}

Async<void> RolloutWork::carryOut(Run run) {
  record_.reset();
  saved_ = {};
  auto gone = co_await goOn(std::move(run));
  record_.reset();  // nothing obeys any more, however it ended
  co_return gone;
}

Async<void> RolloutWork::goOn(Run run) {
  run_ = run;
  order_ = run.order;
  ordered_by_ = run.ordered_by;
  opens_.reset();
  windows_.clear();
  if (!work_.live || !work_.phases) co_return std::unexpected(cannotRollOut());
  CO_TRY(listed, isListed(work_.store, run.rollout.id));
  if (!listed) {
    auto begun = co_await begin(run);
    if (!begun) co_return std::unexpected(std::move(begun).error());
    if (!*begun) co_return Result<void>();
  }
  CO_TRY(record, RolloutRecord::open(work_.store, run.rollout.id));
  record_ = std::make_unique<RolloutRecord>(std::move(record));
  const auto& rollout = record_->rollout();
  // Its process died before the run's row knew how it ended.
  if (rollout.state != RolloutState::Running && hasBegun(run, rollout)) co_return settle(run.id);
  co_return co_await drive(run, directionOf(run, rollout));
}

/// Freezes what was agreed to, and no other plan. Answers whether it is under way.
Async<bool> RolloutWork::begin(Run run) {
  Policy policy;
  for (const auto& node : namesOf(run.apply.nodes)) policy.only.insert(Subject(NodeName(node)));
  auto facts = co_await work_.observe(policy);
  if (!facts) co_return std::unexpected(std::move(facts).error());
  CO_TRY(drafted, draftOf(work_, run, *facts));
  if (drafted.plan.hash() != run.plan_hash) {
    CO_TRY_OK(rows_.move(run.id, RunState::Outdated, RunReason::FactsMoved,
                         "the plan is another one by now"));
    co_return false;
  }
  CO_TRY_OK(drafted.record.begin());
  co_return true;
}

Async<void> RolloutWork::drive(Run run, RolloutDirection way) {
  if (run.rollout.back) {
    CO_TRY(others, runsOfRollout(work_.runs, run.rollout.id, run.id));
    for (const auto& other : others)
      CO_TRY_OK(changeRun(work_.runs, other.id, [&](Run row, std::string& note) -> Result<Run> {
        if (!mayChange(row.state, RunState::Cancelled, RunMover::Person)) return row;
        note = fmt::format("run {}: cancelled: run {} undoes its rollout", row.id, run.id);
        return changed(std::move(row), RunState::Cancelled, RunReason::CancelledByPerson,
                       RunMover::Person, run.asked_by.principal, work_.clock.now());
      }));
    if (!run.rollout.wipe_reason.empty() &&
        record_->rollout().wipe_reason != run.rollout.wipe_reason) {
      auto next = record_->rollout();
      next.wipe_reason = run.rollout.wipe_reason;
      CO_TRY_OK(record_->save(std::move(next)));
    }
  }
  Policy policy;
  for (const auto& [node, progress] : record_->progress())
    if (work_.cluster.findNode(node)) policy.only.insert(Subject(node));
  auto facts = co_await work_.observe(policy);
  if (!facts) co_return std::unexpected(std::move(facts).error());
  RolloutServices services{*work_.live, work_.engine, *work_.phases,   work_.store,
                           work_.clock, nullptr,      fabric::leavesOf};
  services.worker = {"run " + run.id, run.asked_by.principal, run.asked_by.address,
                     run.apply.command.empty() ? "run " + run.id : run.apply.command};
  services.hold = [this](const NodeName& node) { return hold(node); };
  RolloutRunner runner(std::move(services), *record_);
  auto ran = co_await runner.run(way);
  if (!ran) co_return ran;
  co_return settle(run.id);
}

/// What the rollout has become, in the run's row.
Result<void> RolloutWork::settle(const std::string& id) {
  saveProgress(id);
  const auto record = std::move(record_);
  const auto& rollout = record->rollout();
  const auto text = reasonsOf(*record);
  TRY(run, rows_.read(id));
  const auto to = [&](RunState state, RunReason reason, const std::string& words,
                      const std::function<void(Run&)>& edit = {}) -> Result<void> {
    TRY_OK(rows_.move(id, state, reason, words, edit));
    return {};
  };
  switch (rollout.state) {
    case RolloutState::Done:
      if (countOf(*record, {RolloutNodeState::Failed, RolloutNodeState::Skipped}) > 0)
        return to(RunState::WorkLeft, RunReason::Blocked,
                  "some nodes were left out; `muster rollout status --id " + rollout.id + "`");
      return to(RunState::Done, RunReason::None, text);
    case RolloutState::RolledBack:
      if (!run.rollout.back) return to(RunState::Failed, RunReason::RolledBack, text);
      if (record->count(RolloutNodeState::RollbackFailed) > 0)
        return to(RunState::WorkLeft, RunReason::Blocked, text);
      return to(RunState::Done, RunReason::None, text);
    case RolloutState::Aborted:
      return to(RunState::Cancelled, RunReason::CancelledByPerson, text);
    case RolloutState::Halted:
      return to(RunState::Paused, RunReason::RolloutHalted,
                fmt::format("{}; `muster rollout status --id {}`, then `muster run resume {}` or "
                            "`muster rollout rollback --id {}`",
                            text, rollout.id, id, rollout.id));
    case RolloutState::Running:
    case RolloutState::Paused:
      break;
  }
  if (run.order == RunOrder::Cancel) {
    auto ended = std::move(*record);
    TRY_OK(orderRollout(ended, Order::Abort, run.ordered_by, true));
    return to(RunState::Cancelled, RunReason::CancelledByPerson,
              "cancelled by " + run.ordered_by + "; nodes that have changed stay changed");
  }
  if (run.order == RunOrder::None && opens_)
    return to(RunState::Waiting, RunReason::OutsideWindow, text,
              [this](Run& row) { row.waits_until = *opens_; });
  return to(RunState::Paused, RunReason::PausedByPerson, text);
}

bool RolloutWork::obeys(RunOrder order, const std::string& by) {
  if (!record_) return false;
  order_ = order;
  ordered_by_ = by;
  return true;
}

std::string RolloutWork::hold(const NodeName& node) {
  if (order_ != RunOrder::None)
    return fmt::format("{} by {}", order_ == RunOrder::Cancel ? "cancelled" : "paused",
                       ordered_by_);
  const bool undoes_by_itself =
      !run_.rollout.back && record_ && record_->rollout().direction == RolloutDirection::Back;
  return node.empty() || undoes_by_itself ? std::string() : windowOf(node);
}

std::string RolloutWork::windowOf(const NodeName& name) {
  const auto* node = work_.cluster.findNode(name);
  if (!node || mayIgnoreWindows(run_)) return {};
  const auto& pool = work_.cluster.profileOf(*node).pool;
  const auto now = work_.clock.now();
  auto& [looked_at, why] = windows_[pool];
  if (looked_at + kWindowIsKnown > now) return why;
  looked_at = now;
  why.clear();
  const auto window = windowFor(work_.cluster, {name}, now);
  if (!window) {
    why = window.error().str();
  } else if (!window->is_open) {
    why = fmt::format("no maintenance window of {} is open", pool);
    opens_ = window->next;
    if (window->next) why += "; the next one opens at " + muster::toString(*window->next);
  }
  return why;
}

void RolloutWork::saveProgress(const std::string& id) {
  if (!record_) return;
  using enum RolloutNodeState;
  const bool back = record_->rollout().direction == RolloutDirection::Back;
  RunProgress now;
  now.rounds = record_->rollout().wave + 1;
  now.planned = record_->progress().size() - record_->count(Untouched);
  now.done = back ? record_->count(Returned) : record_->count(RolloutNodeState::Done);
  now.failed = countOf(*record_, {RolloutNodeState::Failed, RollbackFailed});
  now.skipped = record_->count(Skipped);
  if (now == saved_) return;
  const auto kept = changeRun(work_.runs, id, [&now](Run run, std::string&) -> Result<Run> {
    run.progress = now;
    return run;
  });
  if (kept) saved_ = now;
}

}  // namespace muster::app
