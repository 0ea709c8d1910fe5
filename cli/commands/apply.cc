// SPDX-License-Identifier: Apache-2.0
// plan and apply: observe, compute, show, carry out.
#include "app/audit_export.h"
#include "cli/commands/commands.h"

#include "base/limits.h"
#include "cli/session.h"
#include "cli/view/plan_view.h"
#include "cli/view/summary.h"
#include "gateway/enrolment_proof.h"
#include "lifecycle/rollout/overlay.h"

#include <iostream>
#include <thread>

namespace muster::cli {
namespace {

using lifecycle::Plan;
using lifecycle::Policy;

constexpr int kMaxRounds =
    4;  ///< apply plans again after each round, until nothing is left or nothing moves
constexpr std::chrono::seconds kWaitForOthers{
    10};  ///< between two looks at what other controllers work on
constexpr int kMaxWaitsForOthers = 360;

Result<Policy> policyFor(const inventory::Cluster& cluster, const Selection& selection,
                         lifecycle::Store& store) {
  TRY(nodes, selectedNodes(cluster, selection.nodes));
  std::set<lifecycle::Subject> only;
  for (const auto& node : nodes) only.insert(lifecycle::Subject(node));
  return lifecycle::policyOf(store, std::move(only));
}

Result<Plan> observedPlan(Session& session, const Policy& policy) {
  TRY(facts, session.controller->run(session.controller->observe(policy)));
  return session.controller->plan(facts, policy);
}

int finish(Session& session, const app::Options& options, WallTime started, int code) {
  if (options.json) return code;
  if (const auto table = stageTable(session.cluster(), session.controller->store(), started))
    std::cout << "\n" << *table;
  return code;
}

/// Rounds of plan and apply until the difference is empty, a round changes nothing, or something
/// fails.
Result<int> converge(Session& session, const app::Options& options, const Selection& selection) {
  int waits = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    TRY(rollouts, lifecycle::rolloutsMark(session.controller->store()));
    if (rollouts != session.rollouts)
      return fail(ErrorCode::Conflict,
                  "a rollout has gone on while this ran; start it again to go on from there");
    TRY(policy, policyFor(session.cluster(), selection, session.controller->store()));
    TRY(plan, observedPlan(session, policy));
    if (!options.json)
      std::cout << planText(plan) << slownessText(slownessOf(session.controller->clock()))
                << std::endl;
    TRY(open, session.controller->store().openIntents());
    if (plan.empty() && open.empty()) return int{kOk};
    TRY(report, session.controller->run(
                    session.controller->apply(plan)));  // an empty plan still closes open intents
    session.view.finish();
    if (plan.empty() && report.ok() && report.held == 0) return int{kOk};
    if (!options.json) std::cout << reportText(report);
    if (!report.ok()) return int{kFailed};
    if (report.held > 0) {  // they finish it, or their lease ends and it is ours
      if (++waits > kMaxWaitsForOthers) return int{kWorkLeft};
      std::this_thread::sleep_for(kWaitForOthers);
      --round;
      continue;
    }
    if (report.done == 0) return int{kWorkLeft};
  }
  return int{kWorkLeft};
}

Error outdated(const std::vector<std::string>& reasons) {
  std::string changes;
  for (const auto& reason : reasons) changes += "\n  " + reason;
  return Error(
      ErrorCode::Conflict,
      "the saved plan no longer holds; nothing was done. Make a new one: muster plan --out FILE" +
          changes);
}

/// Refuses what can be seen to be wrong before anything is started.
Result<Plan> readPlan(const inventory::Cluster& cluster, const std::filesystem::path& file) {
  TRY(text, io::readFile(file));
  auto saved = Plan::fromJson(text);
  if (!saved) return fail(std::move(saved.error().within(file.string())));
  if (saved->inventory_digest != cluster.digest)
    return fail(outdated({"the inventory has changed since the plan was made"}));
  return saved;
}

Result<int> applySaved(Session& session, const app::Options& options, const Plan& saved) {
  TRY(facts, session.controller->run(session.controller->observe(saved.policy)));
  const auto stale = lifecycle::staleReasons(saved, session.cluster(), facts);
  if (!stale.empty()) return fail(outdated(stale));
  TRY(report, session.controller->run(session.controller->apply(saved)));
  session.view.finish();
  if (!options.json) std::cout << reportText(report);
  return report.ok() ? int{kOk} : int{kFailed};
}

}  // namespace

int plan(const app::Options& options, const Selection& selection, const std::filesystem::path& out,
         bool refresh) {
  auto live = liveCluster(options);
  if (!live) return report(live.error());
  auto session = refresh ? Session::open(options, std::move(*live), app::Role::Looks, options.json)
                         : Session::openStored(options, std::move(*live));
  if (!session) return report(session.error());
  auto& controller = *(*session)->controller;
  const auto policy = policyFor((*session)->cluster(), selection, controller.store());
  if (!policy) return report(policy.error());
  const auto made = refresh ? observedPlan(**session, *policy) : [&]() -> Result<Plan> {
    TRY(facts, controller.store().facts());
    return controller.plan(facts, *policy);
  }();
  if (!made) return report(made.error());
  std::cout << (options.json ? made->toJson() + "\n"
                             : planText(*made) + bmcTrustText((*session)->cluster()) +
                                   slownessText(slownessOf((*session)->controller->clock())));
  if (!options.json && !made->empty()) std::cout << gateway::describeProofs((*session)->cluster());
  if (!out.empty())
    if (const auto written = io::writeFileAtomic(out, made->toJson()); !written)
      return report(written.error());
  return kOk;
}

int apply(const app::Options& options, const Selection& selection,
          const std::filesystem::path& saved_plan) {
  if (!saved_plan.empty() && !selection.nodes.empty())
    return report(Error(ErrorCode::InvalidInput,
                        "a saved plan is applied as it is; name its nodes when it is made: muster "
                        "plan --nodes … --out FILE"));
  auto live = liveCluster(options);
  if (!live) return report(live.error());
  std::optional<Plan> saved;
  if (!saved_plan.empty()) {
    auto read = readPlan((*live)->cluster(), saved_plan);
    if (!read) return report(read.error());
    saved = std::move(*read);
  }
  auto session = Session::open(options, std::move(*live), app::Role::Acts, false);
  if (!session) return report(session.error());
  const auto started = SystemClock().now();
  auto code =
      saved ? applySaved(**session, options, *saved) : converge(**session, options, selection);
  auto& controller = *(*session)->controller;
  app::exportAuditHead(controller.store(), controller.keys().audit, controller.clock().now());
  if (!code) return report(code.error());
  return finish(**session, options, started, *code);
}

}  // namespace muster::cli
