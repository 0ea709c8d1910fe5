// SPDX-License-Identifier: Apache-2.0
#include "app/plans/plan.h"

#include "base/limits.h"
#include "fabric/topology/leaves.h"
#include "inventory/model/cluster.h"

namespace muster::app {

Result<lifecycle::Policy> policyFor(const inventory::Cluster& cluster, const std::string& nodes,
                                    lifecycle::Store& store) {
  TRY(selected, selectedNodes(cluster, nodes));
  std::set<lifecycle::Subject> only;
  for (const auto& node : selected) only.insert(lifecycle::Subject(node));
  return lifecycle::policyOf(store, std::move(only));
}

Result<MadePlan> makePlan(const Options& options, const PlanRequest& request,
                          ProgressListener& progress) {
  TRY(live, effectiveCluster(options));
  TRY(session, request.refresh ? Session::open(options, std::move(live), Role::ReadOnly, progress)
                               : Session::openStored(options, std::move(live)));
  TRY(policy, policyFor(session->cluster(), request.nodes, session->store()));
  const double slowness = slownessOf(session->controller->clock());
  auto& controller = *session->controller;
  TRY(facts,
      request.refresh ? controller.run(controller.observe(policy)) : session->store().facts());
  TRY(plan, controller.plan(facts, policy));
  session->controller.reset();
  auto impact = impactOf(session->cluster(), facts, plan, fabric::leavesOf);
  return MadePlan{std::move(session->live), std::move(plan), std::move(impact), slowness};
}

}  // namespace muster::app
