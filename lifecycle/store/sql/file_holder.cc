// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/file_holder.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

namespace muster::lifecycle::sql {
namespace {

/// The bytes that readers share, behind the pending and the reserved one.
constexpr off_t kSharedFirst = 0x40000000 + 2;
constexpr off_t kSharedBytes = 510;
constexpr std::size_t kMaxCommandLineBytes = 4096;
constexpr std::size_t kMaxToldBytes = 120;

}  // namespace

std::optional<pid_t> otherHolderOf(const std::filesystem::path& file) {
  // Never closed: closing any descriptor of a file ends the locks of all of the process's
  // connections to it. It is one for each migration, of which a store has one a version.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kSharedFirst;
  lock.l_len = kSharedBytes;
  if (::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return std::max<pid_t>(lock.l_pid, 0);
}

bool isSameProgram(pid_t process) {
  struct stat own{}, other{};
  return process > 0 && ::stat("/proc/self/exe", &own) == 0 &&
         ::stat(fmt::format("/proc/{}/exe", process).c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

std::string describeProcess(pid_t process) {
  if (process <= 0) return "a process that cannot be seen from here (of another container)";
  auto words =
      io::readFile(fmt::format("/proc/{}/cmdline", process), kMaxCommandLineBytes).value_or("");
  while (words.ends_with('\0')) words.pop_back();
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, ' ');
  if (words.size() > kMaxToldBytes) words = words.substr(0, kMaxToldBytes) + "…";
  return words.empty() ? fmt::format("process {}", process)
                       : fmt::format("process {} ({})", process, words);
}

}  // namespace muster::lifecycle::sql
