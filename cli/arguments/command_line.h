// SPDX-License-Identifier: Apache-2.0
// The whole command line: global options, every command, what no argument may be, and the help's
// last lines.
#pragma once

#include "cli/arguments/arguments.h"

namespace muster::cli {

/// `foreign`: the words behind `lab exec`, which belong to another program.
void buildCommandLine(CLI::App& app, Invocation& call, const std::vector<std::string>& foreign);

}  // namespace muster::cli
