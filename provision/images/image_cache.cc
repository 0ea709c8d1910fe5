// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_cache.h"

#include "base/io/crypto.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPartial = ".partial";
constexpr std::size_t kTokenDigits = 16;

/// Another name each time: a process that an earlier build has left behind writes to a folder that
/// is none any more.
fs::path newPartialOf(const fs::path& entry) {
  fs::path partial = entry;
  partial += "." + io::sha256Hex(io::randomToken(24)).substr(0, kTokenDigits);
  return partial += kPartial;
}

/// Errors: Conflict (mounted). One that something still writes to is left for `image prune`.
Result<void> removePartialsOf(const fs::path& entry) {
  const auto begin = entry.filename().string() + ".";
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(entry.parent_path(), error))
    if (const auto name = each.path().filename().string();
        name.starts_with(begin) && name.ends_with(kPartial))
      found.push_back(each.path());
  for (const auto& partial : found)
    if (auto removed = removeTree(partial);
        !removed && removed.error().code() == ErrorCode::Conflict)
      return removed;
  return {};
}

}  // namespace

fs::path lockOfPartial(const fs::path& partial) {
  const auto name = partial.filename().string();
  return partial.parent_path() / (name.substr(0, name.find('.')) + ".lock");
}

Result<BuildLock> BuildLock::take(const fs::path& file, const std::function<void()>& on_wait) {
  TRY_OK(io::makeDirs(file.parent_path()));
  io::Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid())
    return fail(ErrorCode::Internal,
                fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
  (void)::fchmod(fd.get(), 0600);  // whoever can open it can lock it: older ones were open to all
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return BuildLock(std::move(fd));
  on_wait();
  while (::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot lock {}: {}", file.string(), std::strerror(errno)));
  return BuildLock(std::move(fd));
}

bool BuildLock::isFree(const fs::path& file) {
  const io::Fd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  return !fd.valid() || ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
}

Result<void> removeTree(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder, error))) return {};
  TRY(mounts, io::readFile("/proc/self/mountinfo"));
  const std::string below = fs::weakly_canonical(folder, error).string() + "/";
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    if (point.starts_with(below))
      return fail(ErrorCode::Conflict,
                  fmt::format("{} is still mounted; unmount it, then try again", point));
  }
  fs::remove_all(folder, error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot remove {}: {}", folder.string(), error.message()));
  return {};
}

Result<void> publish(const fs::path& entry,
                     const std::function<Result<void>(const fs::path&)>& fill) {
  TRY_OK(removePartialsOf(entry));
  const auto partial = newPartialOf(entry);
  TRY_OK(io::makeDirs(partial));
  if (auto filled = fill(partial); !filled) {
    (void)removeTree(partial);
    return filled;
  }
  TRY_OK(removeTree(entry));
  std::error_code error;
  fs::rename(partial, entry, error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot put {} in its place: {}", entry.string(), error.message()));
  return {};
}

}  // namespace muster::provision
