// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_planning.h"

#include "app/plans/plan_impact.h"
#include "app/runs/rollout_plans.h"
#include "app/runs/run_erasure.h"
#include "app/runs/run_kinds.h"
#include "app/runs/run_scope.h"
#include "inventory/model/cluster.h"

namespace muster::app {

using namespace lifecycle;

Async<RunRound> lookAt(RunWork& work, Run run) {
  CO_TRY(policy, policyFor(work, run));
  auto facts = work.store.facts();
  if (isAboutNodes(run)) {
    facts = co_await work.observe(policy);
  }
  if (!facts) co_return std::unexpected(std::move(facts).error());
  std::string request;
  if (run.kind == RunKind::Erase) {
    CO_TRY(planned, planErasure(work, run, *facts));
    request = planned.request.id;
  }
  CO_TRY(plan, co_await planOf(work, run, *facts, policy));
  auto impact = co_await currentImpact(work.cluster, work.store, *facts, plan, work.observe_pool);
  if (!impact) co_return std::unexpected(std::move(impact).error());
  CO_TRY(open, declaredIntents(work.store, plan.policy));
  const bool is_own = run.kind == RunKind::Erase || run.kind == RunKind::FirmwareRetry ||
                      run.kind == RunKind::ImageBuild;
  const bool has_nothing = is_own && !run.begun;  // what others have begun is apply's
  const bool nothing_left =
      plan.empty() && (open.empty() || run.kind == RunKind::Erase || has_nothing);
  co_return RunRound{std::move(plan), std::move(*impact), std::move(request), nothing_left};
}

Async<std::optional<Plan>> makePlan(RunWork& work, RunRows& rows, RunMemory& memory, Run run) {
  const auto id = run.id;
  const auto& meant = run.apply.inventory;
  bool is_another = !meant.empty() && meant != work.cluster.digest;
  if (run.kind == RunKind::Rollout) {  // its change is laid when the inventory is read
    const auto known = isChangeKnown(work, run);
    if (known) is_another = is_another || !*known;  // one that does not fit is told below
  }
  if (is_another && work.read_inventory && memory.read_again_for.insert(id).second) {
    memory.begin_none = true;  // the next executor, with the inventory as it is then, plans it
    work.read_inventory();
    co_return std::optional<Plan>();
  }
  CO_TRY(planning, rows.move(id, RunState::Planning, RunReason::None));
  if (is_another) {
    CO_TRY_OK(
        rows.move(id, RunState::Failed, RunReason::InventoryChanged,
                  "who serves the site has read another inventory than the one that is meant; see "
                  "its log, and that both read the same file"));
    co_return std::optional<Plan>();
  }
  auto round = co_await lookAt(work, planning);
  if (!round) co_return std::unexpected(std::move(round).error());
  if (round->nothing_left) {
    CO_TRY_OK(rows.move(
        id, RunState::Done, RunReason::NothingToDo,
        run.kind == RunKind::FirmwareRetry ? "no firmware of these nodes has failed" : ""));
    co_return std::optional<Plan>();
  }
  const auto& plan = round->plan;
  const bool has_waves = run.kind == RunKind::Rollout;  // each within the limits of its domains
  const auto within =
      has_waves ? requireWithinRunLimit(round->impact) : requireWithinLimits(round->impact);
  if (!within) {
    CO_TRY_OK(rows.move(id, RunState::Failed, RunReason::LimitsExceeded, within.error().text(),
                        [&](Run& row) { notePlan(row, plan, round->impact, work.clock.now()); }));
    co_return std::optional<Plan>();
  }
  CO_TRY_OK(rows.keepPlan(id, plan));
  CO_TRY_OK(
      rows.move(id, RunState::Planned, RunReason::None,
                fmt::format("{} actions, plan {}", plan.actions.size(), plan.hash().substr(0, 12)),
                [&](Run& row) {
                  notePlan(row, plan, round->impact, work.clock.now());
                  row.erase.request = round->erase_request;
                  row.inventory_digest = digestFor(work, row);
                }));
  co_return std::optional(plan);
}

}  // namespace muster::app
