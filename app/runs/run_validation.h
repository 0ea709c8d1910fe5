// SPDX-License-Identifier: Apache-2.0
// The validation of a run: gates that a person asks for again. It is an apply that holds nothing
// but gates, so that drains, claims, journal and take-up are the engine's. What it runs again are
// gates that were last seen before the run was asked for: that moment is in the run's row, so
// whoever goes on with it knows what is done. Internal to app/.
#pragma once

#include "app/runs/run_kind.h"

namespace muster::app {

const RunKindRules& validationRules();

}  // namespace muster::app
