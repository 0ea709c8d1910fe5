// SPDX-License-Identifier: Apache-2.0
// The rollout of a run, or its undoing. Its change is made known when the inventory is read
// (rollout_plans.h), and its waves obey orders by themselves (rollout_work.h). Internal to app/.
#pragma once

#include "app/runs/run_kind.h"

namespace muster::app {

const RunKindRules& rolloutRules();

}  // namespace muster::app
