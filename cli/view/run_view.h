// SPDX-License-Identifier: Apache-2.0
// Runs as text.
#pragma once

#include "cli/exit_code.h"
#include "lifecycle/runs/run.h"

#include <string>
#include <vector>

namespace muster::cli {

std::string runTable(const std::vector<lifecycle::Run>& runs);
std::string runText(const lifecycle::Run& run);
/// How a run has ended, in a line or a few.
std::string runEndText(const lifecycle::Run& run);
/// What it waits for, and who can help; empty: it waits for nobody.
std::string runWaitsText(const lifecycle::Run& run);
/// As `apply` ends for the same outcome.
ExitCode exitCodeOf(lifecycle::RunState state);

}  // namespace muster::cli
