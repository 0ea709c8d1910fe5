// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/store_files.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace muster::lifecycle::sql {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kOfOthers = 0077;
constexpr std::array<std::string_view, kStoreFiles.size()> kSuffixes{"", "-wal", "-shm"};
constexpr std::array<std::string_view, kStoreFiles.size()> kNames{
    "the database", "its write-ahead log", "the index of its log"};

/// Of these a file's size and time are known as soon as it was written, by whichever process.
/// Source: linux/magic.h, statfs(2).
struct FileSystem {
  const char* name;
  std::uint64_t magic;
};
constexpr std::array<FileSystem, 7> kOfThisMachine{{{"ext4", 0xEF53},
                                                    {"xfs", 0x58465342},
                                                    {"btrfs", 0x9123683E},
                                                    {"f2fs", 0xF2F52010},
                                                    {"zfs", 0x2FC12FC1},
                                                    {"tmpfs", 0x01021994},
                                                    {"overlayfs", 0x794C7630}}};

bool isOfThisMachine(const std::string& path) {
  struct statfs where{};
  return ::statfs(path.c_str(), &where) == 0 &&
         std::ranges::any_of(kOfThisMachine, [&](const FileSystem& known) {
           return known.magic == static_cast<std::uint32_t>(where.f_type);
         });
}

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

bool isOfThatShape(const io::Fd& log, const WalIndex::LogShape& shape) {
  struct stat status{};
  decltype(shape.salt) salt{};
  decltype(shape.check) check{};
  const auto reads = [&](auto& bytes, std::uint64_t at) {
    return ::pread(log.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
           static_cast<ssize_t>(bytes.size());
  };
  return ::fstat(log.get(), &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) >= shape.least_bytes &&
         reads(salt, WalIndex::kLogSaltAt) && salt == shape.salt &&
         reads(check, shape.last_frame_bytes + WalIndex::kFrameCheckAt) && check == shape.check;
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
  // Not through a link: SQLite names the log after what the link leads to, so that a log beside the
  // link, of before, would be forgotten with the writes that it holds.
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) return refusedBy(errno);
    if (auto refused = create()) return refused;
    if (::lstat(path.c_str(), &status) != 0) return refusedBy(errno);
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
    if (!known && ::lstat(pathOf(file).c_str(), &status) == 0)
      known = Identity{status.st_dev, status.st_ino};
  }
}

void StoreFiles::watchContent(WalIndex index) {
  if (!isOfThisMachine(pathOf(StoreFile::Database))) return;
  index_ = index;
  const auto& known = opened_[static_cast<std::size_t>(StoreFile::Log)];
  if (log_.valid() || !known) return;
  io::Fd log(::open(pathOf(StoreFile::Log).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (log.valid() && ::fstat(log.get(), &status) == 0 &&
      Identity{status.st_dev, status.st_ino} == *known)
    log_ = std::move(log);
}

std::optional<StoreLoss> StoreFiles::contentLoss() const {
  if (!index_) return std::nullopt;
  const StoreLoss over{StoreFile::Database, LossKind::WrittenOver};
  const std::lock_guard lock(mutex_);
  if (written_over_) return over;
  if (log_written_over_) return StoreLoss{StoreFile::Log, LossKind::WrittenOver};
  struct stat index{}, file{};
  // Memory of a file that was cut off cannot be read; SQLite never cuts it while it is open.
  if (::stat(pathOf(StoreFile::Index).c_str(), &index) != 0) return std::nullopt;
  if (index.st_size < static_cast<off_t>(WalIndex::kRegionBytes))
    return StoreLoss{StoreFile::Index, LossKind::WrittenOver};
  if (const auto shape = index_->logShape();
      log_.valid() && shape && !isOfThatShape(log_, *shape) &&
      index_->logShape() == shape) {  // else it has just begun anew
    log_written_over_ = true;
    return StoreLoss{StoreFile::Log, LossKind::WrittenOver};
  }
  const auto before = index_->read();
  if (::stat(pathOf(StoreFile::Database).c_str(), &file) != 0) return std::nullopt;
  const auto after = index_->read();
  if (!before || before != after || !after->settled()) {  // somebody copies the log into it
    last_.reset();
    return std::nullopt;
  }
  const Content now{*after, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
  written_over_ = last_ && last_->copied == now.copied && !last_->sameFileAs(now);
  if (written_over_) return over;
  last_ = now;
  return std::nullopt;
}

std::optional<StoreLoss> StoreFiles::loss() const {
  for (const auto file : kStoreFiles) {
    const auto& known = opened_[static_cast<std::size_t>(file)];
    if (!known) continue;
    struct stat status{};
    if (::lstat(pathOf(file).c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return StoreLoss{file, LossKind::Deleted};
      continue;  // a file system that does not answer now: SQLite says so itself
    }
    if (Identity{status.st_dev, status.st_ino} != *known)
      return StoreLoss{file, LossKind::Replaced};
  }
  return contentLoss();
}

std::string StoreFiles::describe(const StoreLoss& loss) const {
  if (loss.kind == LossKind::WrittenOver)
    return fmt::format(
        "{}, {} that this muster has open, was written over by another program (a backup copied "
        "into it?): it and its log do not belong "
        "together now, so muster writes nothing more, and its last write may be missing. Nobody "
        "may restore files of the state folder while a "
        "muster runs. End every muster that uses it, delete {} and {}, copy the backup to {} once "
        "more, then start muster again",
        pathOf(loss.file), kNames[static_cast<std::size_t>(loss.file)], pathOf(StoreFile::Log),
        pathOf(StoreFile::Index), pathOf(StoreFile::Database));
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
