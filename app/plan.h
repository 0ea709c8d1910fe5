// SPDX-License-Identifier: Apache-2.0
// plan: what apply would do, as a value.
#pragma once

#include "app/plan_impact.h"
#include "app/session.h"
#include "inventory/model/node.h"

namespace muster::app {

struct PlanRequest {
  std::string nodes;    ///< hostlist; empty: all
  bool refresh = true;  ///< observe the nodes first; else plan from the stored facts
};

struct MadePlan {
  std::unique_ptr<lifecycle::EffectiveCluster>
      live;  ///< what it was made from; empty: a server has made it
  lifecycle::Plan plan;
  PlanImpact impact;
  double slowness = 1;  ///< of the place (base/limits.h): deadlines are so many times as long
  const inventory::Cluster& cluster() const { return live->cluster(); }
};

/// Effect: observed facts are stored; nothing else changes.
Result<MadePlan> makePlan(const Options& options, const PlanRequest& request,
                          ProgressListener& progress);

/// What rollouts, permissions and people have said of these nodes; an empty hostlist: all.
Result<lifecycle::Policy> policyFor(const inventory::Cluster& cluster, const std::string& nodes,
                                    lifecycle::Store& store);

}  // namespace muster::app
