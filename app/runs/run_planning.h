// SPDX-License-Identifier: Apache-2.0
// A run before it is agreed to, and before each of its rounds: the nodes are looked at, and its
// plan is made. Internal to app/.
#pragma once

#include "app/runs/run_rounds.h"

namespace muster::app {

struct RunRound {
  lifecycle::Plan plan;
  PlanImpact impact;
  std::function<void(lifecycle::Run&)> note;  ///< RunPlan::note
  std::optional<std::string> nothing_left;    ///< RunKindRules::nothingLeft
};
Async<RunRound> lookAt(RunWork& work, lifecycle::Run run);

/// Of a queued run: it is planned, or over, or waits for another executor. Answers the plan.
/// Errors: those that end the run or are tried again
Async<std::optional<lifecycle::Plan>> makePlan(RunWork& work, RunRows& rows, RunMemory& memory,
                                               lifecycle::Run run);

}  // namespace muster::app
