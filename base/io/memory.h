// How much memory this machine can still give.
#pragma once

#include <cstdint>

namespace muster::io {

/// MemAvailable of /proc/meminfo, bytes; 0 when it cannot be read.
std::uint64_t availableMemoryBytes();

}  // namespace muster::io
