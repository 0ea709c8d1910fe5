// SPDX-License-Identifier: Apache-2.0
#include "app/run_agreement.h"

#include "app/run_scope.h"

namespace muster::app {

using namespace lifecycle;

Result<void> decide(RunRows& rows, const std::string& id) {
  TRY(run, rows.read(id));
  const bool asks = run.impact && hasSomethingToAsk(*run.impact);
  if (isAgreed(run) || (!asks && run.approvals_needed == 0)) {
    TRY_OK(rows.move(id, RunState::Approved, RunReason::None));
    return {};
  }
  const bool by_author = run.apply.confirm && approvalsOf(run) == 0;
  TRY_OK(rows.move(id, RunState::NeedsApproval,
                   by_author ? RunReason::AwaitsConfirmation : RunReason::AwaitsApproval));
  return {};
}

void noteAgreement(Run& run) {
  if (!run.impact) return;
  run.agreed_out = with(run.agreed_out, run.impact->taken_out);
  run.agreed_wipes = with(run.agreed_wipes, run.impact->wiped);
  run.agreed_resets = with(run.agreed_resets, run.impact->reset);
}

Result<bool> mayGoOn(RunRows& rows, const std::string& id, const Plan& plan,
                     const PlanImpact& impact) {
  TRY(run, rows.read(id));
  const bool asks = run.apply.confirm || run.approvals_needed > 0;
  if (!asks ||
      (isWithin(impact.taken_out, run.agreed_out) && isWithin(impact.wiped, run.agreed_wipes) &&
       isWithin(impact.reset, run.agreed_resets)))
    return true;
  TRY_OK(rows.keepPlan(id, plan));
  TRY_OK(rows.move(id, RunState::NeedsApproval, RunReason::PlanGrew,
                   "what is left would disturb more nodes than was agreed to",
                   [&](Run& row) { notePlan(row, plan, impact, rows.now()); }));
  return false;
}

}  // namespace muster::app
