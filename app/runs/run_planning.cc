// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_planning.h"

#include "app/plans/plan_impact.h"
#include "app/runs/run_kind.h"
#include "app/runs/run_scope.h"
#include "inventory/model/cluster.h"

namespace muster::app {

using namespace lifecycle;

Async<RunRound> lookAt(RunWork& work, Run run) {
  const auto& rules = rulesOf(run.kind);
  CO_TRY(policy, rules.policy(work, run));
  auto facts = work.store.facts();
  if (rules.isAboutNodes()) {
    facts = co_await work.observe(policy);
  }
  if (!facts) co_return std::unexpected(std::move(facts).error());
  CO_TRY(planned, co_await rules.plan(work, run, *facts, policy));
  auto impact =
      co_await currentImpact(work.cluster, work.store, *facts, planned.plan, work.observe_pool);
  if (!impact) co_return std::unexpected(std::move(impact).error());
  CO_TRY(open, declaredIntents(work.store, planned.plan.policy));
  auto nothing_left = rules.nothingLeft(run, planned.plan, open);
  co_return RunRound{std::move(planned.plan), std::move(*impact), std::move(planned.note),
                     std::move(nothing_left)};
}

Async<std::optional<Plan>> makePlan(RunWork& work, RunRows& rows, RunMemory& memory, Run run) {
  const auto id = run.id;
  const auto& meant = run.apply.inventory;
  bool is_another = !meant.empty() && meant != work.cluster.digest;
  const auto& rules = rulesOf(run.kind);
  const auto is_read = rules.isInventoryRead(work, run);
  if (is_read) is_another = is_another || !*is_read;  // what does not fit is told below
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
    CO_TRY_OK(rows.move(id, RunState::Done, RunReason::NothingToDo, *round->nothing_left));
    co_return std::optional<Plan>();
  }
  const auto& plan = round->plan;
  const auto within = rules.keepsLimitsByStep() ? requireWithinRunLimit(round->impact)
                                                : requireWithinLimits(round->impact);
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
                  if (round->note) round->note(row);
                  row.inventory_digest = rules.digest(work);
                }));
  co_return std::optional(plan);
}

}  // namespace muster::app
