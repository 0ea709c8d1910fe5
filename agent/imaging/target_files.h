// SPDX-License-Identifier: Apache-2.0
// Files of a system that is being installed, below the folder where its root is mounted.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

inline constexpr unsigned kSecretMode = 0600;

/// Writes a file with the folders that it needs. Errors: Internal
Result<void> put(const std::filesystem::path& root, const std::filesystem::path& name,
                 std::string_view content, unsigned mode = 0644);
/// Appends lines to a file that may be there. Errors: Internal
Result<void> putLines(const std::filesystem::path& root, const std::filesystem::path& name,
                      const std::vector<std::string>& lines);
/// Whether one of these is there.
bool has(const std::filesystem::path& root, std::initializer_list<const char*> places);
/// Errors: InvalidInput naming the package that the image lacks
Result<void> needPackage(bool there, const char* package, const char* for_what);
/// One of the writer's own files (recipes/); empty when there is none.
std::string recipe(std::string_view name);

}  // namespace muster::agent
