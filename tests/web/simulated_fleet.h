// SPDX-License-Identifier: Apache-2.0
// A fleet without machines for the tests of the page: the real executor, engine, planner and
// rollouts carry runs out, and what would be done to a machine takes a moment and is done. Gates
// measure, and with one of the drivers every machine is slower.
#pragma once

#include "app/site/options.h"

#include <chrono>
#include <string>
#include <string_view>

namespace muster::test {

/// A driver with which the simulated machines lose an eighth of their speed.
inline constexpr std::string_view kSlowDriverFacet = "driver.nvidia-580";

/// What the gates of a machine keep as evidence: rates, each machine always the same.
std::string measuredEvidence(const std::string& node, bool has_slow_driver);

/// Carries out the site's runs until the process is ended. Each act takes `pause`.
Result<void> serveRuns(const app::Options& options, std::chrono::milliseconds pause);

}  // namespace muster::test
