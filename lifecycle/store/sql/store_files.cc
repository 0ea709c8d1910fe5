// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/store_files.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace muster::lifecycle::sql {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kOfOthers = 0077;
constexpr std::array<std::string_view, kStoreFiles.size()> kSuffixes{"", "-wal", "-shm"};
constexpr std::array<std::string_view, kStoreFiles.size()> kNames{
    "the database", "its write-ahead log", "the index of its log"};

RefusedFile refusedBy(int error) {
  const bool read_only = error == EACCES || error == EROFS || error == EPERM;
  return {read_only ? FileRefusal::ReadOnly : FileRefusal::CannotOpen, error};
}

/// Moves a file to a name that nothing has yet. Answers errno, EEXIST: something has it.
int moveWithoutReplacing(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system that cannot do so in one step: a second link, then without the first.
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  ::unlink(from.c_str());
  return 0;
}

}  // namespace

StoreFiles::StoreFiles(std::filesystem::path database) {
  for (const auto file : kStoreFiles) {
    const auto i = static_cast<std::size_t>(file);
    paths_[i] = database.string().append(kSuffixes[i]);
  }
}

std::optional<RefusedFile> StoreFiles::create() const {
  const auto& path = pathOf(StoreFile::Database);
  auto temporary = path + ".new.XXXXXX";
  {
    // Closed before it gets the name: from then on another thread's SQLite may hold locks on it.
    const io::Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd.valid()) return refusedBy(errno);
    if (::fchmod(fd.get(), kOwnerOnly) != 0) {
      const int error = errno;
      ::unlink(temporary.c_str());
      return refusedBy(error);
    }
  }
  const int error = moveWithoutReplacing(temporary, path);
  if (error != 0) ::unlink(temporary.c_str());
  if (error != 0 && error != EEXIST) return refusedBy(error);
  return std::nullopt;
}

std::optional<RefusedFile> StoreFiles::prepare() const {
  const auto& path = pathOf(StoreFile::Database);
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) return refusedBy(errno);
    if (auto refused = create()) return refused;
    if (::stat(path.c_str(), &status) != 0) return refusedBy(errno);
  }
  if (!S_ISREG(status.st_mode)) return RefusedFile{FileRefusal::NotARegularFile};
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) != 0) return refusedBy(errno);
  for (const auto& each : paths_) {
    if (::stat(each.c_str(), &status) != 0 || (status.st_mode & kOfOthers) == 0) continue;
    if (::chmod(each.c_str(), status.st_mode & ~kOfOthers & 07777) != 0 && errno != ENOENT)
      return refusedBy(errno);
  }
  return std::nullopt;
}

void StoreFiles::remember() {
  for (const auto file : kStoreFiles) {
    struct stat status{};
    auto& known = opened_[static_cast<std::size_t>(file)];
    if (!known && ::stat(pathOf(file).c_str(), &status) == 0)
      known = Identity{status.st_dev, status.st_ino};
  }
}

std::optional<StoreLoss> StoreFiles::loss() const {
  for (const auto file : kStoreFiles) {
    const auto& known = opened_[static_cast<std::size_t>(file)];
    if (!known) continue;
    struct stat status{};
    if (::stat(pathOf(file).c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return StoreLoss{file, LossKind::Deleted};
      continue;  // a file system that does not answer now: SQLite says so itself
    }
    if (Identity{status.st_dev, status.st_ino} != *known)
      return StoreLoss{file, LossKind::Replaced};
  }
  return std::nullopt;
}

std::string StoreFiles::describe(const StoreLoss& loss) const {
  return fmt::format(
      "{}, {} that this muster has open, was {} under it: what it writes now would be lost, so it "
      "writes nothing more, and its last "
      "write may be missing. Nobody may delete, move or restore files of the state folder while a "
      "muster runs. End every muster that "
      "uses it, look whether a backup has to be restored, then start muster again: it goes on from "
      "what the store holds then",
      pathOf(loss.file), kNames[static_cast<std::size_t>(loss.file)],
      loss.kind == LossKind::Deleted ? "deleted" : "replaced by another file");
}

}  // namespace muster::lifecycle::sql
