// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_rounds.h"

#include "app/runs/run_agreement.h"
#include "app/runs/run_change.h"
#include "app/runs/run_kind.h"
#include "app/runs/run_planning.h"
#include "app/runs/run_scope.h"
#include "inventory/model/cluster.h"

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

namespace {

constexpr int kMaxRounds = 4;
constexpr std::chrono::seconds kOtherWorkersPoll{10};
constexpr int kMaxWaitsForOthers = 360;
/// Facts that are older are read again before an approved plan begins.
constexpr std::chrono::minutes kFactsAreFresh{2};

}  // namespace

RunRounds::RunRounds(RunWork& work, RunRows& rows, RunMemory& memory)
    : work_(work), rows_(rows), memory_(memory) {}

bool RunRounds::obeys(RunOrder order, const std::string& by) {
  return order_handler_ && order_handler_->obeys(order, by);
}

void RunRounds::setOrderHandler(std::unique_ptr<OrderHandler> handler) {
  order_handler_ = std::move(handler);
}

Async<void> RunRounds::carryOut(Run run) {
  const auto id = run.id;
  order_handler_.reset();
  if (run.state == RunState::Running) {
    co_return co_await goOn(std::move(run), std::nullopt);
  }
  if (run.state == RunState::Queued) {
    auto planned = co_await makePlan(work_, rows_, memory_, std::move(run));
    if (!planned) co_return std::unexpected(std::move(planned).error());
    made_ = std::move(*planned);
    made_for_ = id;
  }
  CO_TRY(known, rows_.read(id));
  if (known.state == RunState::Planned) CO_TRY_OK(decide(rows_, work_.cluster, id));
  CO_TRY(decided, rows_.read(id));
  if (decided.state != RunState::Approved) co_return Result<void>();
  co_return co_await begin(std::move(decided));
}

/// Of an approved run: the plan that was agreed to, and no other one.
Async<void> RunRounds::begin(Run run) {
  const auto id = run.id;
  const bool asks = run.impact && hasSomethingToAsk(*run.impact);
  if (!isAgreed(run) && (asks || run.approvals_needed > 0))
    co_return std::unexpected(Error(ErrorCode::Denied, "nobody has agreed to its plan"));
  CO_TRY(still_agreed, isStillAgreed(rows_, work_.store, run));
  if (!still_agreed) co_return Result<void>();
  const auto& rules = rulesOf(run.kind);
  if (rules.isOutdated(work_, run)) {
    CO_TRY_OK(rows_.move(id, RunState::Outdated, RunReason::InventoryChanged,
                         "the inventory has changed since the plan was made"));
    co_return Result<void>();
  }
  if (!run.begun) {
    CO_TRY(is_open, isWindowOpen(rows_, work_.cluster, id));
    if (!is_open) co_return Result<void>();
  }
  std::optional<Plan> plan;
  const bool is_just_made = made_ && made_for_ == id && made_->hash() == run.plan_hash;
  if (!run.begun && is_just_made && !run.apply.confirm && run.approvals_needed == 0) plan = made_;
  if (!run.begun && !plan) {
    CO_TRY(policy, rules.policy(work_, run));
    const bool is_fresh = work_.clock.now() - run.planned_at < kFactsAreFresh;
    auto facts = work_.store.facts();
    if (!is_fresh && rules.isAboutNodes()) {
      facts = co_await work_.observe(policy);
    }
    if (!facts) co_return std::unexpected(std::move(facts).error());
    CO_TRY(now, co_await rules.plan(work_, run, *facts, policy));
    if (now.plan.hash() != run.plan_hash) {
      const auto stale =
          is_just_made ? staleReasons(*made_, work_.cluster, *facts) : std::vector<std::string>();
      CO_TRY_OK(rows_.move(id, RunState::Outdated, RunReason::FactsMoved,
                           stale.empty() ? "the plan is another one by now" : stale.front()));
      co_return Result<void>();
    }
    plan = std::move(now.plan);
  }
  if (!run.begun) {  // looking again takes its time
    CO_TRY(is_open, isWindowOpen(rows_, work_.cluster, id));
    if (!is_open) co_return Result<void>();
  }
  CO_TRY_OK(rules.prepareToGoOn(work_, run));
  CO_TRY(running, rows_.move(id, RunState::Running, RunReason::None, "", noteAgreement));
  memory_.begun.insert(id);
  co_return co_await goOn(std::move(running), std::move(plan));
}

Async<void> RunRounds::goOn(Run run, std::optional<Plan> first) {
  const auto& rules = rulesOf(run.kind);
  co_return co_await rules.carryOut(*this, std::move(run), std::move(first));
}

Async<ApplyReport> RunRounds::apply(Run run, Plan plan) {
  const Worker worker{"run " + run.id, run.asked_by.principal, run.asked_by.address,
                      run.apply.command.empty() ? "run " + run.id : run.apply.command};
  const auto subjects = withSubjects(run.subjects, plan);
  CO_TRY(noted, changeRun(work_.runs, run.id, [&](Run row, std::string&) -> Result<Run> {
           ++row.progress.rounds;
           row.progress.planned = row.progress.done + plan.actions.size();
           row.subjects = subjects;
           return row;
         }));
  before_ = noted.progress;
  done_now_ = done_saved_ = 0;
  action_ids_.clear();
  for (const auto& action : plan.actions) action_ids_.insert(action.id);
  memory_.hear = [this](const Event& event) {
    if (event.kind == EventKind::ActionDone && action_ids_.contains(event.action_id)) ++done_now_;
  };
  const auto scope = rulesOf(run.kind).prepareApply(work_, run, plan);
  if (!scope) co_return std::unexpected(scope.error());
  auto report = co_await work_.engine.apply(std::move(plan), worker);
  memory_.hear = {};
  if (!report) co_return report;
  done_now_ = done_saved_ = 0;
  CO_TRY_OK(changeRun(work_.runs, run.id, [&](Run row, std::string&) -> Result<Run> {
    row.progress = before_;
    row.progress.done += static_cast<std::size_t>(report->done);
    row.progress.failed += static_cast<std::size_t>(report->failed);
    row.progress.blocked += static_cast<std::size_t>(report->blocked);
    row.progress.skipped += static_cast<std::size_t>(report->skipped);
    row.progress.held = static_cast<std::size_t>(report->held);
    addProblems(row, report->problems);
    return row;
  }));
  co_return report;
}

/// What it has allowed and nobody has used is taken back before its state says that it is over.
Result<void> RunRounds::end(const std::string& id, RunState state, RunReason reason,
                            const std::string& text) {
  TRY(run, rows_.read(id));
  TRY(taken_back, rulesOf(run.kind).takeBack(work_, run));
  TRY_OK(rows_.move(id, state, reason, text, [&](Run& row) { addProblems(row, taken_back); }));
  return {};
}

Async<void> RunRounds::converge(Run run, std::optional<Plan> first) {
  const auto id = run.id;
  if (run.inventory_digest != work_.cluster.digest) {
    CO_TRY_OK(end(id, RunState::Outdated, RunReason::InventoryChanged,
                  "the inventory has changed while it ran; what had begun is taken up by the next "
                  "apply"));
    co_return Result<void>();
  }
  int waits = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::optional<Plan> plan = std::exchange(first, std::nullopt);
    if (!plan) {
      auto seen = co_await lookAt(work_, run);
      if (!seen) co_return std::unexpected(std::move(seen).error());
      if (seen->nothing_left) {
        CO_TRY_OK(rows_.move(id, RunState::Done, RunReason::None));
        co_return Result<void>();
      }
      CO_TRY(goes_on, mayGoOn(rows_, work_.cluster, id, seen->plan, seen->impact));
      if (!goes_on) {  // it waits, or is over
        CO_TRY(resting, rows_.read(id));
        CO_TRY_OK(rulesOf(resting.kind).takeBack(work_, resting));
        co_return Result<void>();
      }
      plan = std::move(seen->plan);
    }
    const bool is_empty = plan->empty();
    CO_TRY(open, declaredIntents(work_.store, plan->policy));
    plan->policy.intents_to_end = std::move(open);
    auto report = co_await apply(run, std::move(*plan));
    if (!report) co_return std::unexpected(std::move(report).error());
    if (is_empty && report->ok() && report->held == 0) {
      CO_TRY_OK(rows_.move(id, RunState::Done, RunReason::None));
      co_return Result<void>();
    }
    if (!report->ok()) {  // what is blocked is no failure: a person has to help
      const bool has_failed = report->failed > 0;
      CO_TRY_OK(end(id, has_failed ? RunState::Failed : RunState::WorkLeft,
                    has_failed ? RunReason::ActionFailed : RunReason::Blocked,
                    report->problems.empty() ? "" : report->problems.front()));
      co_return Result<void>();
    }
    if (report->held > 0) {  // they finish it, or their lease ends
      if (++waits > kMaxWaitsForOthers) {
        CO_TRY_OK(end(id, RunState::WorkLeft, RunReason::OthersWork, ""));
        co_return Result<void>();
      }
      co_await work_.clock.sleep(kOtherWorkersPoll);
      --round;
      continue;
    }
    if (report->done == 0) break;
  }
  CO_TRY_OK(end(id, RunState::WorkLeft, RunReason::Blocked, ""));
  co_return Result<void>();
}

void RunRounds::saveProgress(const std::string& id) {
  if (order_handler_) order_handler_->saveProgress(id);
  if (done_now_ == done_saved_) return;
  const auto saved = changeRun(work_.runs, id, [this](Run run, std::string&) -> Result<Run> {
    run.progress = before_;
    run.progress.done += done_now_;
    return run;
  });
  if (saved) done_saved_ = done_now_;
}

}  // namespace muster::app
