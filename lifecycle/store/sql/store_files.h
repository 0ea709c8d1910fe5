// SPDX-License-Identifier: Apache-2.0
// StoreFiles: the files of a SQLite store (database, write-ahead log, its index), seen by name
// only.
//
// POSIX locks belong to a process and a file, not to a descriptor: closing ANY descriptor of the
// database takes away every lock that SQLite holds on it in this process, without a word. Another
// process then finds nobody at work, checkpoints, and deletes the log that this one goes on writing
// into. So nothing here, and nothing elsewhere, opens these files while SQLite may have them open:
// they are looked at with stat(), their modes are set by name, and a new database is made under
// another name and moved into place. The log is the exception: SQLite takes no locks on it, so it
// may be read. docs/adr/0141
#pragma once

#include "base/io/files.h"
#include "base/result.h"
#include "lifecycle/store/sql/wal_index.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace muster::lifecycle::sql {

enum class StoreFile { Database, Log, Index };
inline constexpr std::array kStoreFiles{StoreFile::Database, StoreFile::Log, StoreFile::Index};

enum class LossKind { Deleted, Replaced, WrittenOver };

/// A file that SQLite has open and that has no name any more, or whose name is another file's: what
/// is written into it is lost. Or it is the same file, and another program has written into it:
/// what is read from it is a mixture.
struct StoreLoss {
  StoreFile file;
  LossKind kind;
  friend bool operator==(const StoreLoss&, const StoreLoss&) = default;
};

/// Why a file cannot be used as a store.
enum class FileRefusal { ReadOnly, CannotOpen, NotARegularFile };
struct RefusedFile {
  FileRefusal refusal;
  int error = 0;  ///< errno; 0: none
};

class StoreFiles {
 public:
  explicit StoreFiles(std::filesystem::path database);

  /// Makes an empty database of mode 0600 when there is none, whatever the umask; refuses what is
  /// no file that this user can read and write; takes other users' permissions away from all three
  /// files. Several processes may do so at once.
  std::optional<RefusedFile> prepare() const;
  /// Remembers which files these are. To be called while a connection of this process has them open
  /// and holds its lock.
  void remember();
  /// From now on `loss` also sees that the database was written over (a backup copied into it): by
  /// its size and time of change, which may change only when `index` does; and that the log was: by
  /// its salt and the check sum of its last frame, which `index` has too. Only on file systems of
  /// this machine, which tell size and time at once.
  void watchContent(WalIndex index);
  /// Compares with what was remembered: six stat() and two reads of 8 bytes, cheap enough for every
  /// transaction. Any thread may ask.
  std::optional<StoreLoss> loss() const;
  /// For the operator: what happened, what it means and what to do.
  std::string describe(const StoreLoss& loss) const;

 private:
  struct Identity {
    std::uint64_t device = 0, inode = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  /// The database as it was at a moment when nobody copied the log into it.
  struct Content {
    WalIndex::Copied copied;
    std::int64_t size_bytes = 0, changed_s = 0, changed_ns = 0;
    bool sameFileAs(const Content& other) const {
      return size_bytes == other.size_bytes && changed_s == other.changed_s &&
             changed_ns == other.changed_ns;
    }
  };
  std::optional<StoreLoss> contentLoss() const;
  const std::string& pathOf(StoreFile file) const { return paths_[static_cast<std::size_t>(file)]; }
  std::optional<RefusedFile> create() const;

  std::array<std::string, kStoreFiles.size()> paths_;
  std::array<std::optional<Identity>, kStoreFiles.size()> opened_;
  std::optional<WalIndex> index_;
  io::Fd log_;                ///< to read from
  mutable std::mutex mutex_;  ///< of those below
  mutable std::optional<Content> last_;
  mutable bool written_over_ = false;  ///< for good: what it holds later says nothing any more
  mutable bool log_written_over_ = false;
};

}  // namespace muster::lifecycle::sql
