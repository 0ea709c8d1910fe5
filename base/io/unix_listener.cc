// SPDX-License-Identifier: Apache-2.0
#include "base/io/unix_listener.h"

#include "base/io/peer_credentials.h"

#include <fmt/format.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::io {
namespace {

constexpr int kBacklog = 1024;
constexpr std::size_t kMaxGroups = 65'536;  ///< NGROUPS_MAX of Linux
constexpr std::size_t kFirstGroups = 64;

std::unexpected<Error> failErrno(const std::filesystem::path& path, const char* what) {
  return fail(ErrorCode::Unavailable,
              fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

/// Whoever holds the lock may take the place of a socket that nobody answers any more.
Result<void> removeStale(const std::filesystem::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return {};
    return failErrno(path, "look at");
  }
  if (!S_ISSOCK(found.st_mode))
    return fail(ErrorCode::Conflict,
                fmt::format("{} is there and is no socket; remove it, or name another path",
                            path.string()));
  if (::unlink(path.c_str()) != 0) return failErrno(path, "remove the old");
  return {};
}

}  // namespace

Result<PeerCredentials> peerCredentials(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("the kernel does not say who connected: {}", std::strerror(errno)));
  PeerCredentials out{peer.uid, peer.gid, peer.pid, {}};
  out.groups.resize(kFirstGroups);
  for (int attempt = 0; attempt < 2; ++attempt) {
    size = static_cast<socklen_t>(out.groups.size() * sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, out.groups.data(), &size) == 0) {
      out.groups.resize(size / sizeof(gid_t));
      return out;
    }
    if (errno != ERANGE || size / sizeof(gid_t) > kMaxGroups) break;
    out.groups.resize(size / sizeof(gid_t));
  }
  out.groups.clear();
  return out;
}

Result<UnixListener> UnixListener::open(const UnixSocketOptions& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto text = options.path.string();
  if (text.empty() || text.size() >= sizeof address.sun_path)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("the path of a Unix socket has 1 to {} bytes, and \"{}\" has {}; name a "
                    "shorter one",
                    sizeof address.sun_path - 1, text, text.size()));
  std::memcpy(address.sun_path, text.data(), text.size());
  if (options.path.has_parent_path()) TRY_OK(makeDirs(options.path.parent_path()));
  auto lock = FileLock::take(text + ".lock");
  if (!lock) {
    if (lock.error().code() != ErrorCode::Conflict) return fail(std::move(lock).error());
    return fail(ErrorCode::Conflict, fmt::format("another server answers on {} ({}); stop it, or "
                                                 "name another path",
                                                 text, lock.error().text()));
  }
  TRY_OK(removeStale(options.path));
  Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening.valid()) return failErrno(options.path, "make a socket for");
  // The file is made with the mode of the descriptor (unix(7), Linux): shut until all is right.
  if (::fchmod(listening.get(), 0600) != 0 ||
      ::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failErrno(options.path, "listen on");
  if (options.group && ::chown(text.c_str(), static_cast<uid_t>(-1), *options.group) != 0)
    return failErrno(options.path, "set the group of");
  if (::chmod(text.c_str(), options.mode) != 0) return failErrno(options.path, "set the mode of");
  if (::listen(listening.get(), kBacklog) != 0) return failErrno(options.path, "listen on");
  return UnixListener(options.path, *std::move(lock), std::move(listening));
}

UnixListener::~UnixListener() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace muster::io
