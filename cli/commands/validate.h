// SPDX-License-Identifier: Apache-2.0
// muster validate: each command prints what a use case of app/ answers, and answers the exit
// status. A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/nodes/measurements.h"
#include "app/site/options.h"
#include "app/validation/isolation.h"
#include "app/validation/validate_run.h"
#include "cli/exit_code.h"

#include <filesystem>

namespace muster::cli {

/// Exit 0: all cleared, 1: culprits, or nodes that could not be cleared.
int validateIsolate(const app::Options& options, const app::IsolationRequest& request);
int validateRun(const app::Options& options, const app::ValidateRunRequest& request);
struct ValidateReportArgs {
  app::MeasurementsRequest request;
  std::filesystem::path html, json, junit;
};
/// Exit 0: nothing differs, 1: alarms.
int validateReport(const app::Options& options, const ValidateReportArgs& args);
int validateBaseline(const app::Options& options, const app::MeasurementsRequest& request);
/// Needs no inventory.
int validateChecks(const app::Options& options);

}  // namespace muster::cli
