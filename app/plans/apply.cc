// SPDX-License-Identifier: Apache-2.0
#include "app/plans/apply.h"

#include "app/controller/audit_export.h"
#include "app/plans/current_impact.h"
#include "app/plans/plan.h"
#include "app/plans/plan_impact.h"
#include "app/runs/run_policy.h"
#include "base/limits.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/facet_table.h"
#include "lifecycle/rollout/overlay.h"
#include "validate/synchronized_load.h"

#include <algorithm>
#include <array>
#include <thread>

namespace muster::app {
namespace {

using lifecycle::Plan;

/// Plans again after each round, until nothing is left or nothing moves.
constexpr int kMaxRounds = 4;
/// Between two polls of what other controllers work on.
constexpr std::chrono::seconds kOtherControllersPollInterval{10};
constexpr int kMaxWaitsForOthers = 360;
constexpr std::size_t kIntentsPerSubject = 500;

/// Shows what the plan does, and asks. Errors: Denied (it takes too many nodes out of work); a
/// scheduler that cannot be asked
Result<bool> isApproved(Session& session, const lifecycle::FactSet& facts, const Plan& plan) {
  auto& controller = *session.controller;
  TRY(impact, controller.run(currentImpact(session.cluster(), session.store(), facts, plan,
                                           [&controller](lifecycle::Subject subject) {
                                             return controller.observePool(std::move(subject));
                                           })));
  session.progress.onImpact(plan, impact);
  TRY_OK(requireWithinLimits(impact));
  TRY_OK(requireNoApprovals(session.cluster(), plan, impact, controller.clock().now()));
  if (impact.actions == impact.blocked) return true;
  auto& progress = session.progress;
  return session.controller->run(
      session.controller->ask([&progress, impact] { return progress.mayApply(impact); }));
}

/// How a round ended that carried a plan out. What is blocked or held by another controller is no
/// failure: it is left for a person, or for later.
Outcome outcomeOf(const lifecycle::ApplyReport& report) {
  if (report.failed > 0) return Outcome::Failed;
  return report.ok() && report.held == 0 ? Outcome::Done : Outcome::WorkLeft;
}

Result<Outcome> converge(Session& session, const std::string& nodes) {
  auto& controller = *session.controller;
  int waits = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    TRY(rollouts, lifecycle::overlaysMark(session.store()));
    if (rollouts != session.rollouts)
      return fail(ErrorCode::Conflict,
                  "a rollout has changed the cluster while this ran; start the command again");
    TRY(policy, policyFor(session.cluster(), nodes, session.store()));
    TRY(facts, controller.run(controller.observe(policy)));
    TRY(plan, controller.plan(facts, policy));
    TRY(approved, isApproved(session, facts, plan));
    if (!approved) return Outcome::Declined;
    session.progress.onSlowness(slownessOf(controller.clock()));
    TRY(open, session.store().openIntents());
    const bool is_empty = plan.empty();
    if (is_empty && open.empty()) return Outcome::Done;
    // An empty plan still closes open intents; a fleet's is there once.
    TRY(report, controller.run(controller.apply(std::move(plan))));
    const bool is_done = is_empty && outcomeOf(report) == Outcome::Done;
    if (!is_done) session.progress.onReport(report);
    if (is_done) return Outcome::Done;
    if (!report.ok()) return outcomeOf(report);
    if (report.held > 0) {  // they finish it, or their lease ends and it is ours
      if (++waits > kMaxWaitsForOthers) return Outcome::WorkLeft;
      std::this_thread::sleep_for(kOtherControllersPollInterval);
      --round;
      continue;
    }
    if (report.done == 0) return Outcome::WorkLeft;
  }
  return Outcome::WorkLeft;
}

Error outdated(const std::vector<std::string>& reasons) {
  std::string changes;
  for (const auto& reason : reasons) changes += "\n  " + reason;
  return Error(
      ErrorCode::Conflict,
      "the saved plan no longer holds; nothing was done. Make a new one: muster plan --out FILE" +
          changes);
}

Result<Outcome> applySaved(Session& session, const Plan& saved) {
  auto& controller = *session.controller;
  TRY(facts, controller.run(controller.observe(saved.policy)));
  const auto stale = lifecycle::staleReasons(saved, session.cluster(), facts);
  if (!stale.empty()) return fail(outdated(stale));
  TRY(approved, isApproved(session, facts, saved));
  if (!approved) return Outcome::Declined;
  TRY(report, controller.run(controller.apply(saved)));
  session.progress.onReport(report);
  return outcomeOf(report);
}

void addTime(StageTimes& times, const lifecycle::Intent& intent) {
  const auto* stage = lifecycle::findStageRow(lifecycle::stageOf(intent.action.facet.facet));
  if (!stage) return;
  times.seconds[static_cast<std::size_t>(stage - lifecycle::stageTable().data())].second +=
      std::chrono::duration<double>(intent.closed_at - intent.opened_at).count();
}

}  // namespace

Result<std::vector<StageTimes>> stageTimes(const inventory::Cluster& cluster,
                                           lifecycle::Store& store, WallTime since) {
  std::vector<lifecycle::Subject> subjects{lifecycle::Subject::cluster()};
  for (const auto& node : cluster.nodes) subjects.emplace_back(node.name);
  std::vector<StageTimes> out;
  bool any = false;
  for (const auto& subject : subjects) {
    StageTimes times{subject, {}};
    for (const auto& stage : lifecycle::stageTable()) times.seconds.emplace_back(stage.title, 0);
    TRY(intents, store.intentsOf(subject, kIntentsPerSubject));
    for (const auto& intent : intents)
      if (intent.state == lifecycle::IntentState::Done && intent.opened_at >= since)
        addTime(times, intent);
    for (const auto& [stage, seconds] : times.seconds) any = any || seconds > 0;
    out.push_back(std::move(times));
  }
  if (!any) out.clear();
  return out;
}

Error planExcludesNodes() {
  return Error(ErrorCode::InvalidInput,
               "a saved plan is applied as it is; name its nodes when it is made: muster plan "
               "--nodes … --out FILE");
}

Result<ApplyResult> applyPlan(const Options& options, ApplyRequest request,
                              ProgressListener& progress) {
  if (request.saved && !request.nodes.empty()) return fail(planExcludesNodes());
  TRY(live, effectiveCluster(options));
  if (request.saved && request.saved->inventory_digest != live->cluster().digest)
    return fail(outdated({"the inventory has changed since the plan was made"}));
  TRY(session, Session::open(options, std::move(live), Role::Active, progress));
  auto& controller = *session->controller;
  const auto started = controller.clock().now();
  const auto outcome =
      request.saved ? applySaved(*session, *request.saved) : converge(*session, request.nodes);
  exportAuditHead(controller.store(), controller.keys().audit, controller.clock().now());
  if (!outcome) return fail(outcome.error());
  TRY(stages, stageTimes(session->cluster(), session->store(), started));
  return ApplyResult{*outcome, std::move(stages)};
}

}  // namespace muster::app
