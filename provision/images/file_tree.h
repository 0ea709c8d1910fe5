// SPDX-License-Identifier: Apache-2.0
// Seam: a root file system that is looked at without being started or mounted: a folder, or what is
// in an ext4 file. Links are followed as the system itself would follow them, its root being "/".
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

class FileTree {
 public:
  enum class Kind { File, Folder, Link, Other };
  struct Entry {
    Kind kind = Kind::Other;
    std::uint64_t size_bytes = 0;
    bool executable = false;                   ///< by anybody
    std::optional<unsigned> permissions = {};  ///< as chmod's; none: the reader does not tell them
  };

  virtual ~FileTree() = default;
  /// What is at this path ("usr/bin/env"), not following a link at its end nor on its way.
  virtual std::optional<Entry> at(const std::string& path) const = 0;
  /// Content of a file, or where a link leads. Errors: NotFound, Corrupt (longer than `max_bytes`)
  virtual Result<std::string> read(const std::string& path, std::size_t max_bytes) const = 0;
  /// Names in a folder; none where it is no folder.
  virtual std::vector<std::string> list(const std::string& folder) const = 0;

  /// The same path without any link in it. Errors: NotFound (which part of it is missing, where a
  /// link leads), InvalidInput (links that lead to each other)
  Result<std::string> resolve(const std::string& path) const;
};

/// A folder of this machine. Never leaves it, whatever the links in it say.
std::unique_ptr<FileTree> openFolderTree(const std::filesystem::path& root);

/// An ext4 file system that begins at `offset_bytes` of a file. Errors: InvalidInput (no ext4),
/// Corrupt
Result<std::unique_ptr<FileTree>> openExtTree(const std::filesystem::path& image,
                                              std::uint64_t offset_bytes = 0);

/// Where a name of an archive lies below a folder when the links on its way lead there; the last
/// part is not followed. Folders that are not there yet stay as they are named.
/// Shape:  root × "lib/x" → "usr/lib/x", where root/lib is a link to usr/lib
/// Errors: InvalidInput (a link on its way leads out of the root, nowhere, or in a circle)
Result<std::string> placeBelow(const std::filesystem::path& root, const std::string& name);

}  // namespace muster::provision
