// SPDX-License-Identifier: Apache-2.0
// A plan for people: the same change of many nodes is one line.
#pragma once

#include "lifecycle/model/plan.h"

#include <string>
#include <vector>

namespace muster::app {

struct PlanGroup {
  std::string facet, from, to;  ///< from: "" when unknown
  lifecycle::Disruption disruption = lifecycle::Disruption::None;
  std::string reason;   ///< of the first of them
  std::string blocked;  ///< why it cannot run; a node's own name in it is NODE where it has several
  std::chrono::seconds expected{0};   ///< of each
  std::vector<std::string> subjects;  ///< in the order of the plan
};

/// Pure. What disturbs most first, what is blocked last, then by the number of nodes.
std::vector<PlanGroup> groupsOf(const lifecycle::Plan& plan);

}  // namespace muster::app
