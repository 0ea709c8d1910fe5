// SPDX-License-Identifier: Apache-2.0
#include "base/io/memory.h"

#include <fstream>
#include <string>

namespace muster::io {

std::uint64_t availableMemoryBytes(const std::filesystem::path& root) {
  std::ifstream meminfo(root / "proc/meminfo");
  std::string key, unit;
  for (std::uint64_t kibibytes = 0; meminfo >> key >> kibibytes;) {
    if (key == "MemAvailable:") return kibibytes << 10;
    std::getline(meminfo, unit);
  }
  return 0;
}

}  // namespace muster::io
