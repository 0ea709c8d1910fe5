// SPDX-License-Identifier: Apache-2.0
// A fleet without machines for the tests of the page: the real executor, engine and planner carry
// runs out, and what would be done to a machine takes a moment and is done.
#pragma once

#include "app/options.h"

#include <chrono>

namespace muster::test {

/// Carries out the site's runs until the process is ended. Each act takes `pause`.
Result<void> serveRuns(const app::Options& options, std::chrono::milliseconds pause);

}  // namespace muster::test
