// SPDX-License-Identifier: Apache-2.0
// Manual pages, made from the command tree.
#pragma once

#include "cli/tree/command_tree.h"

#include <string>
#include <string_view>

namespace muster::cli {

/// The manual page of the program or of one command (and those below it), as roff: man(7).
std::string manPage(const CommandInfo& command, std::string_view version);

}  // namespace muster::cli
