// SPDX-License-Identifier: Apache-2.0
#include "app/validation/validate_run.h"

#include "app/plans/current_impact.h"
#include "app/plans/plan_impact.h"
#include "app/runs/run_policy.h"
#include "app/site/effective_cluster.h"
#include "app/site/session.h"
#include "app/validation/gate_plan.h"
#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "validate/synchronized_load.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::app {
namespace {

/// A run that was not finished goes on: what has passed since it began is not run again.
std::string markOf(const ValidateRunRequest& request) {
  return "validate.run." +
         io::sha256Hex(fmt::format("{}|{}", request.nodes, fmt::join(request.gates, ",")))
             .substr(0, 16);
}

/// The planned nodes of each rack start their gates at one moment.
Result<void> synchronizeLoad(Controller& controller, const inventory::Cluster& cluster,
                             const lifecycle::Plan& plan, ProgressListener& progress) {
  std::set<NodeName> nodes;
  for (const auto& action : plan.actions)
    if (isGate(action.facet.facet)) nodes.insert(action.facet.subject.node());
  TRY(told, controller.synchronizedLoad().request(cluster, {nodes.begin(), nodes.end()}));
  for (const auto& line : told) progress.onNotice(line);
  return {};
}

}  // namespace

Result<ValidateRunResult> runGates(const Options& options, const ValidateRunRequest& request,
                                   ProgressListener& progress) {
  TRY(live, effectiveCluster(options));
  TRY(session, Session::open(options, std::move(live), Role::Active, progress));
  auto& controller = *session->controller;
  if (request.minutes)
    controller.stopAfter(std::chrono::minutes(*request.minutes), request.time_is_over_status);
  auto& store = controller.store();
  TRY(nodes, selectedNodes(session->cluster(), request.nodes));
  TRY(gates, gatesOf(session->cluster(), nodes, request.gates));
  std::set<lifecycle::Subject> only;
  for (const auto& node : nodes) only.insert(lifecycle::Subject(node));
  TRY(policy, lifecycle::policyOf(store, only));

  const auto mark = markOf(request);
  TRY(began, store.getValue(mark));
  WallTime since = controller.clock().now();
  if (began && !began->empty()) {
    TRY(earlier, parseWallTime(*began));
    since = earlier;
    progress.onNotice(fmt::format("goes on with the run of {}", *began));
  }
  TRY(facts, controller.run(controller.observe(policy)));
  const auto again = gatesSeenBefore(facts, nodes, gates, since);
  TRY(plan, controller.plan(without(facts, again), policy));
  TRY_OK(onlyGates(plan));
  progress.onPlan(plan);
  if (request.synchronized_load)
    TRY_OK(synchronizeLoad(controller, session->cluster(), plan, progress));
  if (request.dry_run) return ValidateRunResult{};
  TRY(impact, controller.run(currentImpact(session->cluster(), store, facts, plan,
                                           [&controller](lifecycle::Subject subject) {
                                             return controller.observePool(std::move(subject));
                                           })));
  TRY_OK(requireWithinLimits(impact));
  TRY_OK(requireNoApprovals(session->cluster(), plan, impact, controller.clock().now()));

  TRY_OK(store.putValue(mark, toString(since)));
  for (const auto& [subject, facets] : again) TRY_OK(store.forgetFacts(subject, facets));
  TRY(now, controller.run(controller.observe(policy)));
  TRY(real, controller.plan(now, policy));
  TRY_OK(onlyGates(real));
  TRY(done, controller.run(controller.apply(std::move(real))));
  progress.onReport(done);
  if (!done.ok()) return ValidateRunResult{false};
  TRY_OK(store.putValue(mark, ""));
  return ValidateRunResult{};
}

}  // namespace muster::app
