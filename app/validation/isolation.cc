// SPDX-License-Identifier: Apache-2.0
#include "app/validation/isolation.h"

#include "app/runs/run_policy.h"
#include "app/site/effective_cluster.h"
#include "app/site/session.h"
#include "app/site/state_folder.h"
#include "app/validation/isolation_paths.h"
#include "app/validation/isolation_routes.h"
#include "app/validation/isolation_work.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"

namespace muster::app {
namespace {

/// One run of one wish at a time, and it is found again by the same words.
std::string logOf(const IsolationRequest& request) {
  auto wish = fmt::format("{}|{}|{}|{}", request.nodes, request.engine,
                          request.min_gbps.value_or(0), request.seed);
  if (!request.until.empty()) wish += "|" + request.until;
  return "isolating-" + io::sha256Hex(wish).substr(0, 16);
}

/// Nobody can agree to what a command does by itself.
Result<void> requireNobodyAsked(const inventory::Cluster& cluster,
                                const std::vector<NodeName>& named, WallTime now) {
  lifecycle::Plan plan;
  for (const auto& node : named.empty() ? nodesOfFabrics(cluster) : named)
    plan.actions.push_back(testOf(node));
  lifecycle::PlanImpact impact;
  impact.actions = impact.subjects = plan.actions.size();
  return requireNoApprovals(cluster, plan, impact, now);
}

}  // namespace

Result<IsolationResult> isolateNodes(const Options& options, const IsolationRequest& request,
                                     ProgressListener& progress) {
  TRY(live, effectiveCluster(options));
  TRY(named, selectedNodes(live->cluster(), request.nodes));
  TRY_OK(requireNobodyAsked(live->cluster(), named, SystemClock().now()));
  TRY(session, Session::open(options, std::move(live), Role::ReadOnly, progress));
  auto& controller = *session->controller;
  const auto services =
      isolationServices(controller, session->cluster(), options, session->lab,
                        [&progress](const std::string& text) { progress.onNotice(text); });
  const auto log = logOf(request);
  TRY_OK(io::makeDirs(services.folder, kStateFolderMode));
  const auto alone = io::FileLock::take((services.folder / log).string() + ".lock");
  if (!alone) return fail(alone.error());
  TRY(done, controller.run(isolateNodes(services, {request, named, named.empty(), log})));
  TRY(file, keepIsolation(services, done));
  TRY_OK(forgetIsolation(services.folder, log));
  return IsolationResult{std::move(done), std::move(file)};
}

}  // namespace muster::app
