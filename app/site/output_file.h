// SPDX-License-Identifier: Apache-2.0
// Files that a person names for a command to write into (--out, --html, …).
#pragma once

#include "app/site/options.h"

#include <filesystem>
#include <string_view>

namespace muster::app {

/// Writes it whole or not at all. What is there is replaced only when it may be the same kind of
/// file of before: it begins with the same character. Errors: InvalidInput (a file of the state
/// folder, the inventory, another kind of file, no regular file), those of the disk
Result<void> writeOutputFile(const Options& options, const std::filesystem::path& file,
                             std::string_view content);

}  // namespace muster::app
