// SPDX-License-Identifier: Apache-2.0
#include "app/plans/rollout_guard.h"

#include "app/plans/current_impact.h"
#include "app/plans/plan_impact.h"
#include "app/runs/rollout_plans.h"
#include "app/runs/run_kind.h"
#include "app/runs/run_policy.h"
#include "app/runs/runs.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "lifecycle/rollout/overlay.h"

#include <algorithm>

namespace muster::app {

using lifecycle::RolloutRecord;

Result<void> requireNobodyAsked(Session& session, const lifecycle::FactSet& facts,
                                const lifecycle::Plan& plan) {
  auto& controller = *session.controller;
  TRY(impact, controller.run(currentImpact(session.cluster(), controller.store(), facts, plan,
                                           [&controller](lifecycle::Subject subject) {
                                             return controller.observePool(std::move(subject));
                                           })));
  TRY_OK(requireWithinRunLimit(impact));
  return requireNoApprovals(session.cluster(), plan, impact, controller.clock().now());
}

Result<void> requireNobodyAskedForRest(Session& session, const RolloutRecord& book) {
  lifecycle::Plan plan;
  lifecycle::PlanImpact impact;
  for (const auto& [node, progress] : book.progress()) {
    const auto* frozen = book.frozen(node);
    if (!frozen || progress.state == lifecycle::RolloutNodeState::Done) continue;
    for (const auto& each : frozen->actions) {
      lifecycle::Action action;
      action.id = each.id;
      action.facet.subject = lifecycle::Subject(node);
      plan.actions.push_back(std::move(action));
      ++impact.actions;
    }
    const auto most = std::ranges::max(frozen->actions, {}, &lifecycle::FrozenAction::disruption);
    if (most.disruption >= lifecycle::Disruption::Drain) impact.taken_out.push_back(node);
    if (most.disruption >= lifecycle::Disruption::Reset) impact.reset.push_back(node);
    if (most.disruption >= lifecycle::Disruption::Wipe) impact.wiped.push_back(node);
  }
  return requireNoApprovals(session.cluster(), plan, impact, session.controller->clock().now());
}

Result<void> mayRollBack(const Options& options, lifecycle::Store& store,
                         const lifecycle::RolloutRecord& record) {
  TRY(declared, loadCluster(options));
  return lifecycle::mayRollBack(declared, store, record);
}

Result<std::optional<lifecycle::Run>> runOfRollout(const Options& options, const std::string& id) {
  TRY(runs, openRunStore(options));
  TRY(open, runsOfRollout(*runs, id));
  return open.empty() ? std::nullopt : std::optional(std::move(open.front()));
}

Result<void> acceptGate(const Options& options, const lifecycle::Run& run,
                        const std::string& reason, const std::string& by) {
  if (!isRunReason(reason))
    return fail(ErrorCode::InvalidInput,
                fmt::format("say why the rollout goes on although its gate failed, in at most {} "
                            "bytes; nothing was accepted",
                            kMaxRunReasonBytes));
  if (run.kind != lifecycle::RunKind::Rollout)
    return fail(ErrorCode::InvalidInput,
                fmt::format("run {} is of kind {}: only a rollout has gates that can be accepted",
                            run.id, toString(run.kind)));
  if (run.reason != lifecycle::RunReason::RolloutHalted)
    return fail(ErrorCode::Conflict, fmt::format("run {} is {}: no gate of it waits to be accepted",
                                                 run.id, toString(run.state)));
  TRY(store, openStoreForReading(options));
  TRY(book, RolloutRecord::open(*store, run.rollout.id));
  TRY_OK(lifecycle::prepareResume(book, fmt::format("{}: {}", by, reason)));
  return addNote(
      *store, {},
      fmt::format("rollout {}: the failed gate is accepted by {}: {}", run.rollout.id, by, reason));
}

}  // namespace muster::app
