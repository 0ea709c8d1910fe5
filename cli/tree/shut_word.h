// SPDX-License-Identifier: Apache-2.0
// Which word of a command line names a file that is shut to the user that a command works as.
#pragma once

#include <filesystem>
#include <functional>
#include <span>

namespace muster::cli {

/// As access(2): 0, or why not (errno).
using Access = std::function<int(const std::filesystem::path& path, int mode)>;
Access accessOfThisProcess();

/// The first word that names a file which may not be read, or not be made; nullptr: none. What an
/// option reads and is not there is nobody's to make: whose command failed was told that already.
const char* shutWord(std::span<char* const> words, const Access& access);

}  // namespace muster::cli
