// SPDX-License-Identifier: Apache-2.0
// The recipes (provision/images/recipes) that travel inside the binary.
#pragma once

#include "base/embedded.h"
#include "base/result.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::provision {

std::span<const EmbeddedFile> recipeFiles();

/// SHA-256 over the recipes that a system of this kind ("node", "ramos") is made from.
std::string recipeDigest(std::string_view kind);
/// The lines of a list recipe ("node/packages") without comments.
std::vector<std::string> recipeLines(std::string_view name);
/// Writes all recipes below a folder; scripts are executable.
Result<void> writeRecipes(const std::filesystem::path& folder);

}  // namespace muster::provision
