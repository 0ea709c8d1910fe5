// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/arguments/arguments.h"

namespace muster::cli {

/// completion and man: made from `app` itself, whole, when they run.
void addCompletionCommands(CLI::App& app, Invocation& call);

}  // namespace muster::cli
