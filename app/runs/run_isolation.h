// SPDX-License-Identifier: Apache-2.0
// The isolation of a run: tests between nodes that nobody works with. Its rounds are
// validate/isolate's, with a log of their own; the run brings who asked and agreed, holds the nodes
// meanwhile, and goes on whatever dies. Internal to app/.
#pragma once

#include "app/runs/run_kind.h"

namespace muster::app {

const RunKindRules& isolationRules();

}  // namespace muster::app
