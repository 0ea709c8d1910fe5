// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_rollout.h"

#include "app/plans/rollout_change.h"
#include "app/runs/rollout_plans.h"
#include "app/runs/rollout_work.h"
#include "inventory/model/cluster.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "lifecycle/rollout/overlay.h"

#include <fmt/format.h>

namespace muster::app {

using namespace lifecycle;

namespace {

Result<void> requireChange(const Run& run) {
  const auto& asked = run.rollout;
  if (asked.change.empty() == asked.driver.empty())
    return fail(ErrorCode::InvalidInput,
                "say what changes, in one way: a change or a driver; nothing was done");
  if (run.apply.nodes.empty())
    return fail(ErrorCode::InvalidInput, "a rollout names its nodes; nothing was done");
  if (asked.change.size() > kMaxRolloutChangeBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("a change has at most {} bytes", kMaxRolloutChangeBytes));
  return {};
}

/// What the whole rollout would do, or its undoing. Errors: those of draftWithPlan, mayRollBack
Result<Plan> planRollout(const RunWork& work, const Run& run, const FactSet& facts) {
  if (!work.live || !work.phases) return fail(cannotRollOut());
  if (!run.rollout.back) {
    TRY(drafted, draftOf(work, run, facts));
    return std::move(drafted.plan);
  }
  TRY(record, RolloutRecord::open(work.store, run.rollout.id));
  if (work.may_roll_back) TRY_OK(work.may_roll_back(record));
  return planRollback(*work.live, *work.phases, work.store, facts, record,
                      !run.rollout.wipe_reason.empty());
}

/// The nodes that its undoing is about.
Result<Policy> policyForRollback(const RunWork& work, const Run& run) {
  TRY(record, RolloutRecord::open(work.store, run.rollout.id));
  Policy policy;
  for (const auto& [node, progress] : record.progress())
    if (work.cluster.findNode(node)) policy.only.insert(Subject(node));
  return policy;
}

/// Of a rollout that nobody works on: a person's word ends it.
Result<void> abortRollout(const RunWork& work, const Run& run) {
  if (!run.begun) return {};
  TRY(listed, isListed(work.store, run.rollout.id));
  if (!listed) return {};
  TRY(record, RolloutRecord::open(work.store, run.rollout.id));
  if (!record.rollout().isOpen()) return {};
  TRY_OK(orderRollout(record, Order::Abort, run.ordered_by, true));
  return {};
}

class RolloutRules final : public RunKindRules {
 public:
  Result<void> accept(Run& run) const override {
    if (run.rollout.back)
      return run.rollout.id.empty()
                 ? fail(ErrorCode::InvalidInput, "say which rollout is to be undone")
                 : Result<void>();
    run.rollout.id = newRolloutId();
    return requireChange(run);
  }
  Run asAsked(Run run) const override {
    if (!run.rollout.back) run.rollout.id.clear();  // made anew for each order
    return run;
  }
  bool keepsLimitsByStep() const override { return true; }
  bool obeysWhileRunning() const override { return true; }
  bool hasWorkToEnd() const override { return true; }
  bool isToldByNotes() const override { return true; }
  Result<bool> isInventoryRead(const RunWork& work, const Run& run) const override {
    if (!work.live) return fail(cannotRollOut());
    if (run.rollout.back || work.live->knows(run.rollout.id)) return true;
    TRY_OK(changeOf(run.rollout, *work.live, run.apply.nodes));
    return false;
  }
  std::string digest(const RunWork& work) const override {
    return work.live ? work.live->declaredDigest() : work.cluster.digest;
  }
  /// One that has begun goes on: what is edited outranks its change (lifecycle/rollout/overlay.h).
  bool isOutdated(const RunWork& work, const Run& run) const override {
    return !run.begun && RunKindRules::isOutdated(work, run);
  }
  Result<Policy> policy(const RunWork& work, const Run& run) const override {
    return run.rollout.back ? policyForRollback(work, run) : RunKindRules::policy(work, run);
  }
  Async<RunPlan> plan(RunWork& work, Run run, FactSet facts, Policy) const override {
    CO_TRY(plan, planRollout(work, run, facts));
    co_return RunPlan{std::move(plan)};
  }
  Result<void> prepareToGoOn(const RunWork& work, const Run& run) const override {
    return prepareRolloutToGoOn(work, run);
  }
  Async<void> carryOut(RunRounds& rounds, Run run, std::optional<Plan>) const override {
    auto made = std::make_unique<RolloutWork>(rounds.work(), rounds.rows());
    auto& rollout = *made;
    rounds.setOrderHandler(std::move(made));
    co_return co_await rollout.carryOut(std::move(run));
  }
  Result<void> cancel(const RunWork& work, const Run& run) const override {
    return abortRollout(work, run);
  }
};

}  // namespace

const RunKindRules& rolloutRules() {
  static const RolloutRules rules;
  return rules;
}

}  // namespace muster::app
