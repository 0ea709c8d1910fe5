// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_agreement.h"

#include "app/plans/plan_impact.h"
#include "app/runs/run_change.h"
#include "app/runs/run_policy.h"
#include "app/runs/run_scope.h"
#include "app/site/revoked_tokens.h"
#include "lifecycle/store/store.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

namespace {

/// Nodes that the run has been allowed to take out of work, and that this plan leaves alone.
std::size_t takenOutBefore(const Run& run, const PlanImpact& impact) {
  auto names = namesOf(run.agreed_out);
  for (const auto& node : impact.taken_out) names.erase(node.str());
  return names.size();
}

Result<bool> isOpenFor(RunRows& rows, const inventory::Cluster& cluster, const Run& run,
                       const std::vector<NodeName>& taken_out) {
  if (mayIgnoreWindows(run)) return true;
  TRY(window, windowFor(cluster, taken_out, rows.now()));
  if (window.is_open) return true;
  const auto pools = fmt::format("{}", fmt::join(window.pools, ", "));
  if (!window.next) {
    TRY_OK(rows.move(run.id, RunState::Failed, RunReason::NoCommonWindow,
                     fmt::format("the maintenance windows of {} are never open together: ask for "
                                 "the nodes of one pool at a time",
                                 pools)));
    return false;
  }
  TRY_OK(rows.move(run.id, RunState::Waiting, RunReason::OutsideWindow,
                   fmt::format("the next maintenance window of {} opens at {}", pools,
                               muster::toString(*window.next)),
                   [&](Run& row) { row.waits_until = *window.next; }));
  return false;
}

/// Whether it is within what was agreed to; if not, people are asked again.
Result<bool> isAgreedTo(RunRows& rows, const inventory::Cluster& cluster, const Run& run,
                        const Plan& plan, const PlanImpact& impact) {
  auto grown = run;
  notePlan(grown, plan, impact, rows.now());
  const auto needed = approvalsNeeded(cluster, grown);
  const bool is_within = isWithin(impact.taken_out, run.agreed_out) &&
                         isWithin(impact.wiped, run.agreed_wipes) &&
                         isWithin(impact.reset, run.agreed_resets);
  if (is_within && needed <= run.approvals_needed) return true;
  if (!run.apply.confirm && needed == 0) {  // nobody is asked; how much it was is counted on
    TRY_OK(changeRun(rows.store(), run.id, [&](Run row, std::string&) -> Result<Run> {
      auto of_plan = std::exchange(row.impact, impact);
      noteAgreement(row);
      row.impact = std::move(of_plan);
      return row;
    }));
    return true;
  }
  TRY_OK(rows.keepPlan(run.id, plan));
  TRY_OK(rows.move(run.id, RunState::NeedsApproval, RunReason::PlanGrew,
                   "what is left would disturb more nodes than was agreed to", [&](Run& row) {
                     notePlan(row, plan, impact, rows.now());
                     row.approvals_needed = needed;
                   }));
  return false;
}

}  // namespace

Result<void> decide(RunRows& rows, const inventory::Cluster& cluster, const std::string& id) {
  TRY(run, rows.read(id));
  const bool asks = run.impact && hasSomethingToAsk(*run.impact);
  const auto needed = approvalsNeeded(cluster, run);
  run.approvals_needed = needed;
  const auto note = [needed](Run& row) { row.approvals_needed = needed; };
  if (isAgreed(run) || (!asks && needed == 0)) {
    TRY_OK(rows.move(id, RunState::Approved, RunReason::None, "", note));
    return {};
  }
  const bool by_author = run.apply.confirm && approvalsOf(run) == 0;
  TRY_OK(rows.move(id, RunState::NeedsApproval,
                   by_author ? RunReason::AwaitsConfirmation : RunReason::AwaitsApproval,
                   needed > 0 ? fmt::format("the inventory asks for {} approvals", needed) : "",
                   note));
  return {};
}

Result<bool> isStillAgreed(RunRows& rows, Store& store, const Run& run) {
  if (run.approvals.empty() && run.overrides.empty() && !RevokedTokens::mayKnow(run.asked_by))
    return true;
  TRY(tokens, RevokedTokens::read(store));
  auto struck = run;
  auto why = tokens.strikeOut(struck);
  // What has begun goes on, and who resumes it answers for it.
  const auto void_author = run.begun ? std::string() : tokens.whyVoid(run.asked_by);
  if (why.empty() && void_author.empty()) return true;
  if (!void_author.empty()) {
    struck.approvals_needed = std::max<std::size_t>(struck.approvals_needed, 1);
    why.push_back(
        fmt::format("its author counts no more: {}; somebody else has to look at the plan "
                    "and agree (`muster run approve {}`), or end the run (`muster run "
                    "cancel {}`)",
                    void_author, run.id, run.id));
  }
  if (isAgreed(struck)) {
    if (struck.approvals == run.approvals && struck.overrides == run.overrides) return true;
    TRY_OK(changeRun(rows.store(), run.id, [&](Run row, std::string& note) -> Result<Run> {
      tokens.strikeOut(row);
      note = fmt::format("run {}: {}; enough others agree", run.id, fmt::join(why, "; "));
      return row;
    }));
    return true;
  }
  TRY_OK(rows.move(run.id, RunState::NeedsApproval, RunReason::ApprovalVoid,
                   fmt::format("{}", fmt::join(why, "; ")), [&](Run& row) {
                     tokens.strikeOut(row);
                     row.approvals_needed = struck.approvals_needed;
                   }));
  return false;
}

void noteAgreement(Run& run) {
  if (!run.impact) return;
  run.agreed_out = with(run.agreed_out, run.impact->taken_out);
  run.agreed_wipes = with(run.agreed_wipes, run.impact->wiped);
  run.agreed_resets = with(run.agreed_resets, run.impact->reset);
}

Result<bool> mayGoOn(RunRows& rows, const inventory::Cluster& cluster, const std::string& id,
                     const Plan& plan, const PlanImpact& impact) {
  TRY(run, rows.read(id));
  if (const auto within = requireWithinLimits(impact, takenOutBefore(run, impact)); !within) {
    TRY_OK(rows.move(id, RunState::Failed, RunReason::LimitsExceeded, within.error().text()));
    return false;
  }
  TRY(agreed, isAgreedTo(rows, cluster, run, plan, impact));
  if (!agreed) return false;
  return isOpenFor(rows, cluster, run, impact.taken_out);
}

Result<bool> isWindowOpen(RunRows& rows, const inventory::Cluster& cluster, const std::string& id) {
  TRY(run, rows.read(id));
  return isOpenFor(rows, cluster, run,
                   run.impact ? run.impact->taken_out : std::vector<NodeName>());
}

Result<std::optional<Run>> endWaiting(RunRows& rows, Run run, bool is_outdated) {
  if (!run.plan_hash.empty() && is_outdated) {
    TRY_OK(rows.move(run.id, RunState::Outdated, RunReason::InventoryChanged,
                     "the inventory has changed since the plan was made"));
    return std::optional<Run>();
  }
  if (run.state != RunState::Waiting || rows.now() < run.waits_until) return std::optional<Run>();
  TRY(approved, rows.move(run.id, RunState::Approved, RunReason::None));
  return std::optional(std::move(approved));
}

}  // namespace muster::app
