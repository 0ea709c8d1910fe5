// SPDX-License-Identifier: Apache-2.0
// Seam: files. Small helpers with muster's errors.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster::io {

Result<std::string> readFile(const std::filesystem::path& path, std::size_t max_bytes = 256u << 20);
/// Written beside, synced, renamed: a reader sees the old or the new content, never a part.
Result<void> writeFileAtomic(const std::filesystem::path& path, std::string_view content,
                             unsigned mode = 0644);
/// The same for a copy of what is kept elsewhere: nobody waits for the disk, and a power cut may
/// take it.
Result<void> writeFileUnsynced(const std::filesystem::path& path, std::string_view content,
                               unsigned mode = 0644);
/// For a file that a user names: atomic as well. A symbolic link stays, and what it leads to is
/// replaced. Errors: InvalidInput (a device, FIFO, socket or folder is there, or a process's open
/// file such as /dev/stdout; nothing was written)
Result<void> writeNamedFile(const std::filesystem::path& path, std::string_view content,
                            unsigned mode = 0644);
Result<void> makeDirs(const std::filesystem::path& path, unsigned mode = 0755);

/// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();

 private:
  int fd_ = -1;
};

/// An advisory lock held for the life of the object; one muster per state folder.
class FileLock {
 public:
  /// Errors: Conflict when another process holds it (its pid is in the text)
  static Result<FileLock> take(const std::filesystem::path& path);
  /// Whether its path still names the file that is locked. If not, others can lock a new one.
  bool isNamed() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  FileLock(Fd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Fd fd_;
  std::filesystem::path path_;
};

}  // namespace muster::io
