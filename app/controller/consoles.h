// SPDX-License-Identifier: Apache-2.0
// Where a node's console is: the same for the controller and for `muster console`.
#pragma once

#include "app/site/options.h"
#include "bmc/console/console_recorder.h"
#include "lab/lab.h"

#include <optional>

namespace muster::app {

/// As the inventory says; in the twin the machines' own serial sockets.
bmc::ConsoleFactory consoleFinder(const Options& options, const std::optional<lab::LabHandle>& lab,
                                  const bmc::ConsoleServices& services);

}  // namespace muster::app
