// SPDX-License-Identifier: Apache-2.0
#include "base/io/regular_file.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::io {
namespace {

constexpr std::size_t kPieceBytes = 64u << 10;

std::string kindOf(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISDIR(mode)) return "a folder";
  return "";
}

std::unexpected<Error> failErrno(int error, std::string_view what,
                                 const std::filesystem::path& path) {
  const auto code = error == ENOENT || error == ENOTDIR       ? ErrorCode::NotFound
                    : error == EACCES || error == EPERM       ? ErrorCode::Denied
                    : error == ELOOP || error == ENAMETOOLONG ? ErrorCode::InvalidInput
                                                              : ErrorCode::Internal;
  return fail(code, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error)));
}

}  // namespace

std::string irregularKind(const std::filesystem::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? kindOf(status.st_mode) : "";
}

Result<std::string> readRegularFile(const std::filesystem::path& path, std::size_t max_bytes) {
  // A device may act on being opened, so it is looked at first; what counts is what was opened.
  if (const auto kind = irregularKind(path); !kind.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is {}, not a regular file", path.string(), kind));
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return failErrno(errno, "open", path);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return failErrno(errno, "look at", path);
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is {}, not a regular file", path.string(), kindOf(status.st_mode)));
  std::string out;
  while (true) {
    const auto old = out.size();
    out.resize(old + kPieceBytes);
    const auto n = ::read(fd.get(), out.data() + old, kPieceBytes);
    if (n < 0 && errno != EINTR) return failErrno(errno, "read", path);
    out.resize(old + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return out;
    if (out.size() > max_bytes)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} is larger than {} bytes", path.string(), max_bytes));
  }
}

}  // namespace muster::io
