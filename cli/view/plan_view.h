// SPDX-License-Identifier: Apache-2.0
// A plan for people: per subject, what changes from what to what, why, what it disturbs, how long
// it takes.
#pragma once

#include "app/plans/plan_impact.h"
#include "inventory/model/fwd.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/model/plan.h"

#include <string>

namespace muster::cli {

/// What a plan does to the site, before its actions; "" for an empty plan.
std::string impactText(const app::PlanImpact& impact);

enum class PlanDetail {
  Grouped,  ///< equal actions once, with the hostlist of their nodes
  Nodes     ///< every action of every node
};
std::string planText(const lifecycle::Plan& plan, PlanDetail detail = PlanDetail::Grouped);
/// One line: which BMCs get a password, and why; "" where no BMC is asked by https.
std::string bmcTrustText(const inventory::Cluster& cluster);
/// One line: how much longer deadlines are because this machine is slow; "" where they are as they
/// are written.
std::string slownessText(double slowness);
std::string reportText(const lifecycle::ApplyReport& report);

/// "90 s" → "1 min 30 s"
std::string durationText(std::chrono::seconds duration);

}  // namespace muster::cli
