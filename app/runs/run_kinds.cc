// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_kinds.h"

#include "app/plans/plan.h"
#include "app/runs/rollout_plans.h"
#include "app/runs/run_erasure.h"
#include "app/runs/run_firmware_retry.h"
#include "app/runs/run_image_build.h"
#include "app/runs/run_isolation.h"
#include "app/runs/run_validation.h"
#include "inventory/model/cluster.h"
#include "lifecycle/rollout/effective_cluster.h"

namespace muster::app {

using namespace lifecycle;

Result<Policy> policyFor(const RunWork& work, const Run& run) {
  if (run.kind == RunKind::Rollout && run.rollout.back) return policyForRollback(work, run);
  if (run.kind == RunKind::FirmwareRetry) return policyForRetry(work, run);
  if (run.kind == RunKind::ImageBuild) {
    Policy none;
    none.only.insert(Subject::cluster());
    return none;
  }
  if (run.kind != RunKind::Erase) return policyFor(work.cluster, run.apply.nodes, work.store);
  TRY(selected, selectedNodes(work.cluster, run.apply.nodes));
  if (selected.size() != 1)
    return fail(ErrorCode::InvalidInput, "an erasure is of one node; nothing was erased");
  return erasurePolicy(selected.front());
}

namespace {

Result<Plan> planOfNodes(const RunWork& work, const Run& run, const FactSet& facts,
                         const Policy& policy) {
  if (run.kind == RunKind::Rollout) return planRollout(work, run, facts);
  if (run.kind == RunKind::Isolate) return planIsolation(work, run, facts);
  if (run.kind == RunKind::Validate) return planValidation(work, run, facts, policy);
  if (run.kind == RunKind::FirmwareRetry) return planRetry(work, run, facts, policy);
  if (run.kind != RunKind::Erase) return work.plan(facts, policy);
  TRY(planned, planErasure(work, run, facts));
  return std::move(planned.plan);
}

}  // namespace

bool isAboutNodes(const Run& run) { return run.kind != RunKind::ImageBuild; }

Async<Plan> planOf(RunWork& work, Run run, FactSet facts, Policy policy) {
  if (run.kind == RunKind::ImageBuild) {
    co_return co_await planImageBuild(work, std::move(run));
  }
  co_return planOfNodes(work, run, facts, policy);
}

std::string digestFor(const RunWork& work, const Run& run) {
  return run.kind == RunKind::Rollout && work.live ? work.live->declaredDigest()
                                                   : work.cluster.digest;
}

bool isOfAnotherInventory(const RunWork& work, const Run& run) {
  if (run.kind == RunKind::Rollout && run.begun) return false;
  return run.inventory_digest != digestFor(work, run);
}

}  // namespace muster::app
