// SPDX-License-Identifier: Apache-2.0
// Reading /sys, under a root that tests choose.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <vector>

namespace muster::agent {

inline constexpr std::size_t kMaxSysfsBytes = 64u << 10;

/// In order; nothing when the folder is not there.
inline std::vector<std::filesystem::path> childrenOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    children.push_back(entry.path());
  std::sort(children.begin(), children.end());
  return children;
}

}  // namespace muster::agent
