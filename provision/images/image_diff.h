// SPDX-License-Identifier: Apache-2.0
// What lies between two images: chunks to fetch, and, where both hold an ext4 file system, files,
// packages and kernels.
#pragma once

#include "wire/pack_index.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace muster::provision {

struct ImageDiff {
  std::size_t chunks = 0,
              changed_chunks = 0;  ///< of B; those that A does not hold at the same place
  std::uint64_t fetch_bytes = 0;   ///< compressed: what a node with A must fetch to get B
  bool looked_inside = false;      ///< false: at least one is not an ext4 file system
  std::vector<std::string> added, removed, changed;  ///< paths
  struct Package {
    std::string name, from, to;  ///< empty: not there
  };
  std::vector<Package> packages;
  std::vector<std::string> kernels_from, kernels_to;  ///< versions with modules
};

/// Pure: by the indexes alone.
ImageDiff diffChunks(const wire::PackIndex& a, const wire::PackIndex& b);

/// The same with a look inside; unpacks both into `work`, which the caller removes.
/// Errors: Corrupt (a chunk, a file system), Unavailable (disk full)
Result<ImageDiff> diffImages(const std::filesystem::path& a, const std::filesystem::path& b,
                             const std::filesystem::path& work);

/// Installed packages by name, from the text of /var/lib/dpkg/status.
std::map<std::string, std::string> installedPackages(std::string_view dpkg_status);

}  // namespace muster::provision
