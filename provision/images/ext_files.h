// SPDX-License-Identifier: Apache-2.0
// Seam: libext2fs. Looks into an ext4 file and puts its times right, without mounting it and
// without being root.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace muster::provision {

struct FileFact {
  std::uint32_t mode = 0, uid = 0, gid = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t inode = 0;
  friend bool operator==(const FileFact& a, const FileFact& b) {
    return a.mode == b.mode && a.uid == b.uid && a.gid == b.gid && a.size_bytes == b.size_bytes;
  }
};

/// A file system that is only read.
class ExtFiles {
 public:
  /// `offset_bytes`: where in the file it begins. Errors: InvalidInput (no ext file system),
  /// Corrupt
  static Result<ExtFiles> open(const std::filesystem::path& image, std::uint64_t offset_bytes = 0);
  ExtFiles(ExtFiles&& other) noexcept;
  ~ExtFiles();

  /// Everything by path ("usr/bin/env"), but lost+found. Errors: Corrupt
  Result<std::map<std::string, FileFact>> list() const;
  /// Of the folder at its top, which list() does not name. Errors: Corrupt
  Result<std::uint32_t> rootMode() const;
  /// Content of a regular file, or where a symbolic link points to. Errors: Corrupt, NotFound
  Result<std::string> read(std::uint32_t inode, std::size_t max_bytes) const;
  /// SHA-256 of the same. Errors: Corrupt
  Result<std::string> digest(std::uint32_t inode) const;

 private:
  explicit ExtFiles(void* handle) : handle_(handle) {}
  void* handle_;  ///< ext2_filsys
};

/// Makes what depends on the hour of the build independent of it: change, access and creation times
/// become `epoch`, and so do times of change of content that are not older than `since` (made by
/// the build itself). Both are seconds since 1970.
Result<void> settleTimes(const std::filesystem::path& image, std::int64_t epoch,
                         std::int64_t since);

}  // namespace muster::provision
