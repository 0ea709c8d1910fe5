// SPDX-License-Identifier: Apache-2.0
// How much memory this machine can still give.
#pragma once

#include <cstdint>
#include <filesystem>

namespace muster::io {

/// MemAvailable of proc/meminfo below `root`, bytes; 0 when it cannot be read.
std::uint64_t availableMemoryBytes(const std::filesystem::path& root = "/");

}  // namespace muster::io
