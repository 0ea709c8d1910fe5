// SPDX-License-Identifier: Apache-2.0
// What people have agreed to, and that a run does this and no more.
#include "app/plan.h"
#include "app/run_change.h"
#include "app/run_executor.h"
#include "app/run_scope.h"
#include "inventory/model/cluster.h"

namespace muster::app {

using namespace lifecycle;

namespace {

/// Facts that are older are read again before an approved plan begins.
constexpr std::chrono::minutes kFactsAreFresh{2};

}  // namespace

/// Of a planned run: whom it needs.
Result<void> RunExecutor::decide(const std::string& id) {
  TRY(run, readRun(work_.runs, id));
  const bool asks = run.impact && hasSomethingToAsk(*run.impact);
  if (isAgreed(run) || (!asks && run.approvals_needed == 0)) {
    TRY_OK(move(id, RunState::Approved, RunReason::None));
    return {};
  }
  const bool by_author = run.apply.confirm && approvalsOf(run) == 0;
  TRY_OK(move(id, RunState::NeedsApproval,
              by_author ? RunReason::AwaitsConfirmation : RunReason::AwaitsApproval));
  return {};
}

/// Of an approved run: the plan that was agreed to, and no other one.
Async<void> RunExecutor::begin(Run run) {
  const auto id = run.id;
  const bool asks = run.impact && hasSomethingToAsk(*run.impact);
  if (!isAgreed(run) && (asks || run.approvals_needed > 0))
    co_return std::unexpected(Error(ErrorCode::Denied, "nobody has agreed to its plan"));
  if (run.inventory_digest != work_.cluster.digest) {
    CO_TRY_OK(move(id, RunState::Outdated, RunReason::InventoryChanged,
                   "the inventory has changed since the plan was made"));
    co_return Result<void>();
  }
  std::optional<Plan> plan;
  const bool is_just_made = made_ && made_for_ == id && made_->hash() == run.plan_hash;
  if (!run.begun && is_just_made && !run.apply.confirm && run.approvals_needed == 0) plan = made_;
  if (!run.begun && !plan) {
    CO_TRY(policy, policyFor(work_.cluster, run.apply.nodes, work_.store));
    const bool is_fresh = work_.clock.now() - run.planned_at < kFactsAreFresh;
    auto facts = work_.store.facts();
    if (!is_fresh) {
      auto looking = work_.observe(policy);
      facts = co_await std::move(looking);
    }
    if (!facts) co_return std::unexpected(std::move(facts).error());
    CO_TRY(now, work_.plan(*facts, policy));
    if (now.hash() != run.plan_hash) {
      const auto stale =
          is_just_made ? staleReasons(*made_, work_.cluster, *facts) : std::vector<std::string>();
      CO_TRY_OK(move(id, RunState::Outdated, RunReason::FactsMoved,
                     stale.empty() ? "the plan is another one by now" : stale.front()));
      co_return Result<void>();
    }
    plan = std::move(now);
  }
  CO_TRY(running, move(id, RunState::Running, RunReason::None, "", [](Run& row) {
           if (!row.impact) return;
           row.agreed_out = with(row.agreed_out, row.impact->taken_out);
           row.agreed_wipes = with(row.agreed_wipes, row.impact->wiped);
           row.agreed_resets = with(row.agreed_resets, row.impact->reset);
         }));
  memory_->begun.insert(id);
  auto rounds = converge(std::move(running), std::move(plan));
  auto went = co_await std::move(rounds);
  co_return went;
}

/// Whether a later round is within what was agreed to. If not, people are asked again.
Result<bool> RunExecutor::mayGoOn(const std::string& id, const Round& round) {
  TRY(run, readRun(work_.runs, id));
  const bool asks = run.apply.confirm || run.approvals_needed > 0;
  const auto& impact = round.impact;
  if (!asks ||
      (isWithin(impact.taken_out, run.agreed_out) && isWithin(impact.wiped, run.agreed_wipes) &&
       isWithin(impact.reset, run.agreed_resets)))
    return true;
  TRY_OK(keepPlan(id, round.plan));
  TRY_OK(move(id, RunState::NeedsApproval, RunReason::PlanGrew,
              "what is left would disturb more nodes than was agreed to",
              [&](Run& row) { notePlan(row, round.plan, impact, work_.clock.now()); }));
  return false;
}

}  // namespace muster::app
