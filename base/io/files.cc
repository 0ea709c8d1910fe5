// SPDX-License-Identifier: Apache-2.0
#include "base/io/files.h"

#include "base/io/regular_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace muster::io {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kReadPieceBytes = 64u << 10;

std::unexpected<Error> failErrno(int error, std::string_view what, const fs::path& path) {
  const auto text = fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return fail(ErrorCode::NotFound, text);
    case EACCES:
    case EPERM:
    case EROFS:
      return fail(ErrorCode::Denied, text);
    case EEXIST:
      return fail(ErrorCode::Conflict, text);
    case ELOOP:
    case ENAMETOOLONG:
      return fail(ErrorCode::InvalidInput, text);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return fail(ErrorCode::Unavailable, text);
    default:
      return fail(ErrorCode::Internal, text);
  }
}

Result<void> writeAll(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const auto n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failErrno(errno, "write", path);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

int Fd::release() { return std::exchange(fd_, -1); }

Result<std::string> readFile(const fs::path& path, std::size_t max_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return failErrno(errno, "open", path);
  // A FIFO's reader waits for its writer, who may never come.
  if (struct stat status{}; ::fstat(fd.get(), &status) == 0 && S_ISFIFO(status.st_mode))
    return fail(ErrorCode::InvalidInput, fmt::format("{} is a FIFO, not a file", path.string()));
  std::string out;
  for (;;) {  // not by size: files of /proc have none
    const auto old = out.size();
    out.resize(old + kReadPieceBytes);
    const auto n = ::read(fd.get(), out.data() + old, kReadPieceBytes);
    if (n < 0 && errno != EINTR) return failErrno(errno, "read", path);
    out.resize(old + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return out;
    if (out.size() > max_bytes) {
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} is larger than {} bytes", path.string(), max_bytes));
    }
  }
}

namespace {

Result<void> replaceFile(const fs::path& path, std::string_view content, unsigned mode,
                         bool synced) {
  auto temporary = path.string() + ".XXXXXX";
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return failErrno(errno, "create", path);
  const auto written = [&]() -> Result<void> {
    TRY_OK(writeAll(fd.get(), content, path));
    if (::fchmod(fd.get(), mode) != 0) return failErrno(errno, "set the mode of", path);
    if (synced && ::fsync(fd.get()) != 0) return failErrno(errno, "sync", path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return failErrno(errno, "rename to", path);
    return {};
  }();
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (!synced) return {};
  const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  Fd dir(::open(folder.c_str(),
                O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // the rename itself must survive a power cut
  if (dir.valid()) ::fsync(dir.get());
  return {};
}

}  // namespace

Result<void> writeFileAtomic(const fs::path& path, std::string_view content, unsigned mode) {
  return replaceFile(path, content, mode, true);
}
Result<void> writeFileUnsynced(const fs::path& path, std::string_view content, unsigned mode) {
  return replaceFile(path, content, mode, false);
}

namespace {

constexpr int kMaxLinks = 40;  ///< as Linux follows

/// What the path names once its links are followed; it need not exist.
Result<fs::path> fileToReplace(const fs::path& path) {
  if (const auto kind = irregularKind(path); !kind.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is {}, not a regular file; it was left as it is: name a file",
                            path.string(), kind));
  fs::path at = path;
  for (int links = 0; links < kMaxLinks; ++links) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(at, error))) return at;
    const auto target = fs::read_symlink(at, error);
    if (error) return failErrno(error.value(), "follow the link", at);
    at = target.is_absolute() ? target : at.parent_path() / target;
    if (at.string().starts_with("/proc/"))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} is an open file of a process; it was left as it is: name a file",
                              path.string()));
  }
  return failErrno(ELOOP, "follow the link", path);
}

}  // namespace

Result<void> writeNamedFile(const fs::path& path, std::string_view content, unsigned mode) {
  TRY(file, fileToReplace(path));
  return writeFileAtomic(file, content, mode);
}

Result<void> makeDirs(const fs::path& path, unsigned mode) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error) return failErrno(error.value(), "make folder", path);
  if (made && ::chmod(path.c_str(), mode) != 0) return failErrno(errno, "set the mode of", path);
  return {};
}

namespace {

constexpr int kOrphanTries = 100;
constexpr std::chrono::milliseconds kOrphanPause{20};
constexpr int kDeletedTries = 100;
constexpr mode_t kLockMode = 0600;

/// The pid that the holder of the lock wrote; 0 when it is not there (yet).
pid_t holderOf(int lock) {
  char text[32] = {};
  return ::pread(lock, text, sizeof text - 1, 0) > 0
             ? static_cast<pid_t>(std::strtol(text, nullptr, 10))
             : 0;
}

/// What a link leads to is not ours to write into.
std::unexpected<Error> noLockFile(const fs::path& path) {
  return fail(
      ErrorCode::InvalidInput,
      fmt::format("{} is no regular file, so it is not used as a lock; see who made it, and "
                  "remove it",
                  path.string()));
}

}  // namespace

bool FileLock::isNamed() const {
  struct stat ours{}, named{};
  return ::fstat(fd_.get(), &ours) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

/// A holder that was killed may have left children between fork and exec: they share the lock for a
/// moment more. One that has deleted the file before it let go leaves us with the lock of a file
/// that has no name: others lock a new one, so we go on to that as well.
Result<FileLock> FileLock::take(const fs::path& path) {
  for (int deleted = 0; deleted < kDeletedTries; ++deleted) {
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kLockMode));
    if (!fd.valid() && (errno == ELOOP || errno == EISDIR)) return noLockFile(path);
    if (!fd.valid()) return failErrno(errno, "open", path);
    struct stat ours{};
    if (::fstat(fd.get(), &ours) != 0) return failErrno(errno, "look at", path);
    if (!S_ISREG(ours.st_mode)) return noLockFile(path);
    // Whoever can open the file can lock it, and keep muster out for as long as he likes.
    if ((ours.st_mode & ~kLockMode & 0777) != 0 && ::fchmod(fd.get(), kLockMode) != 0)
      return failErrno(errno, "close to other users", path);
    for (int tries = 0; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
      if (errno != EWOULDBLOCK) return failErrno(errno, "lock", path);
      const pid_t holder = holderOf(fd.get());
      const bool orphaned = holder > 0 && ::kill(holder, 0) != 0 && errno == ESRCH;
      if (!orphaned || tries >= kOrphanTries)
        return fail(ErrorCode::Conflict,
                    holder > 0 ? fmt::format("{} is held by process {}; wait for it or stop it",
                                             path.string(), holder)
                               : fmt::format("{} is held by another program; find it: fuser {}",
                                             path.string(), path.string()));
      std::this_thread::sleep_for(kOrphanPause);
    }
    FileLock lock(std::move(fd), path);
    if (!lock.isNamed()) continue;
    const auto pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(lock.fd_.get(), 0) != 0 ||
        ::pwrite(lock.fd_.get(), pid.data(), pid.size(), 0) < 0)
      return failErrno(errno, "write", path);
    return lock;
  }
  return fail(ErrorCode::Conflict, fmt::format("{} was deleted {} times while it was being locked; "
                                               "another process takes and ends it all the time",
                                               path.string(), kDeletedTries));
}

}  // namespace muster::io
