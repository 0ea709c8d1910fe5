// SPDX-License-Identifier: Apache-2.0
// A Unix socket that a server listens on: a file with an owner and a mode, and one server to it.
#pragma once

#include "base/io/files.h"

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace muster::io {

struct UnixSocketOptions {
  std::filesystem::path path;  ///< at most 107 bytes, as the kernel has it
  unsigned mode = 0660;        ///< who may write to it may connect
  std::optional<gid_t> group;  ///< nullopt: the process's
};

/// Bound and listening. The file goes with the object; a server that was killed leaves it, and the
/// next one takes its place: PATH.lock says whether somebody still answers.
class UnixListener {
 public:
  /// Nobody but the owner can connect before owner and mode are right.
  /// Errors: Conflict (another server answers there, or the path is no socket), InvalidInput (the
  /// path), Unavailable
  static Result<UnixListener> open(const UnixSocketOptions& options);
  UnixListener(UnixListener&&) noexcept = default;
  ~UnixListener();

  /// The listening descriptor is the caller's from now on.
  int releaseDescriptor() { return listening_.release(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  UnixListener(std::filesystem::path path, FileLock lock, Fd listening)
      : path_(std::move(path)), lock_(std::move(lock)), listening_(std::move(listening)) {}
  std::filesystem::path path_;
  FileLock lock_;
  Fd listening_;
};

}  // namespace muster::io
