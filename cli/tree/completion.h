// SPDX-License-Identifier: Apache-2.0
// Completion scripts of the shells, made from the command tree. Names of nodes, profiles, pools,
// racks and rollouts are asked of `muster completion words KIND` when they are needed.
#pragma once

#include "cli/tree/command_tree.h"

#include <optional>
#include <string>
#include <string_view>

namespace muster::cli {

/// `shell`: bash, zsh, fish. nullopt: another one.
std::optional<std::string> completionScript(std::string_view shell, const CommandInfo& tree);

}  // namespace muster::cli
