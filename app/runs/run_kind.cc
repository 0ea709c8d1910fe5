// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_kind.h"

#include "app/plans/plan.h"
#include "app/runs/run_bmc_change.h"
#include "app/runs/run_erasure.h"
#include "app/runs/run_firmware_retry.h"
#include "app/runs/run_image_build.h"
#include "app/runs/run_isolation.h"
#include "app/runs/run_rollout.h"
#include "app/runs/run_rounds.h"
#include "app/runs/run_validation.h"
#include "inventory/model/cluster.h"

#include <cstdlib>

namespace muster::app {

using namespace lifecycle;

bool isRunReason(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") != std::string::npos &&
         text.size() <= kMaxRunReasonBytes;
}

Result<void> RunKindRules::accept(Run&) const { return {}; }

Run RunKindRules::asAsked(Run run) const { return run; }

std::string RunKindRules::subject(const Run& run) const {
  return run.apply.nodes.empty() ? "all nodes" : run.apply.nodes;
}

bool RunKindRules::keepsLimitsByStep() const { return false; }

bool RunKindRules::obeysWhileRunning() const { return false; }

bool RunKindRules::hasWorkToEnd() const { return false; }

bool RunKindRules::isToldByNotes() const { return false; }

bool RunKindRules::isAboutNodes() const { return true; }

Result<bool> RunKindRules::isInventoryRead(const RunWork&, const Run&) const { return true; }

std::string RunKindRules::digest(const RunWork& work) const { return work.cluster.digest; }

bool RunKindRules::isOutdated(const RunWork& work, const Run& run) const {
  return run.inventory_digest != digest(work);
}

Result<Policy> RunKindRules::policy(const RunWork& work, const Run& run) const {
  return policyFor(work.cluster, run.apply.nodes, work.store);
}

Async<RunPlan> RunKindRules::plan(RunWork& work, Run, FactSet facts, Policy policy) const {
  CO_TRY(plan, work.plan(facts, policy));
  co_return RunPlan{std::move(plan)};
}

std::optional<std::string> RunKindRules::nothingLeft(const Run&, const Plan& plan,
                                                     const std::set<std::string>& open) const {
  return plan.empty() && open.empty() ? std::optional<std::string>("") : std::nullopt;
}

Result<void> RunKindRules::prepareToGoOn(const RunWork&, const Run&) const { return {}; }

Async<void> RunKindRules::carryOut(RunRounds& rounds, Run run, std::optional<Plan> first) const {
  co_return co_await rounds.converge(std::move(run), std::move(first));
}

Result<std::unique_ptr<ApplyScope>> RunKindRules::prepareApply(const RunWork&, const Run&,
                                                               const Plan&) const {
  return nullptr;
}

Result<std::vector<std::string>> RunKindRules::takeBack(const RunWork&, const Run&) const {
  return std::vector<std::string>();
}

Result<void> RunKindRules::cancel(const RunWork&, const Run&) const { return {}; }

const RunKindRules& rulesOf(RunKind kind) {
  static const RunKindRules apply;
  switch (kind) {  // without a default: the compiler names the kind that has no rules
    case RunKind::Apply:
      return apply;
    case RunKind::Erase:
      return erasureRules();
    case RunKind::Rollout:
      return rolloutRules();
    case RunKind::Validate:
      return validationRules();
    case RunKind::Isolate:
      return isolationRules();
    case RunKind::FirmwareRetry:
      return firmwareRetryRules();
    case RunKind::ImageBuild:
      return imageBuildRules();
    case RunKind::BmcPassword:
      return bmcPasswordRules();
    case RunKind::BmcCertificate:
      return bmcCertificateRules();
  }
  std::abort();
}

}  // namespace muster::app
