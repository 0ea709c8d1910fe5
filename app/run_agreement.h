// SPDX-License-Identifier: Apache-2.0
// What people have agreed to, and that a run does this and no more. Internal to app/.
#pragma once

#include "app/run_rows.h"

namespace muster::app {

/// Of a planned run: whom it needs.
Result<void> decide(RunRows& rows, const std::string& id);
/// The newest plan is agreed to: later rounds may disturb its nodes.
void noteAgreement(lifecycle::Run& run);
/// Whether a later round is within what was agreed to. If not, people are asked again.
Result<bool> mayGoOn(RunRows& rows, const std::string& id, const lifecycle::Plan& plan,
                     const lifecycle::PlanImpact& impact);

}  // namespace muster::app
