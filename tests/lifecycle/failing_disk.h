// SPDX-License-Identifier: Apache-2.0
// FailingDisk: while one lives, every SQLite file that is opened lies on a disk that can fall
// broken: from the k-th write on it answers this code, until it is mended. What was written stays.
#pragma once

#include <sqlite3.h>

#include <map>
#include <stdexcept>

namespace muster::test {

class FailingDisk {
 public:
  FailingDisk() : vfs_(*sqlite3_vfs_find(nullptr)) {
    if (the_disk) throw std::logic_error("one failing disk at a time");
    the_disk = this;
    base_ = sqlite3_vfs_find(nullptr);
    vfs_.zName = "failing-disk";
    vfs_.xOpen = open;
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~FailingDisk() {
    sqlite3_vfs_unregister(&vfs_);
    the_disk = nullptr;
  }
  FailingDisk(const FailingDisk&) = delete;

  void fallSickAt(int write, int code) {
    writes = 0;
    failing_from_ = write;
    code_ = code;
  }
  void mend() { failing_from_ = kWell; }
  int writes = 0, refused = 0;

 private:
  static constexpr int kWell = -1;
  static inline FailingDisk* the_disk = nullptr;

  int answer() {
    ++writes;
    if (failing_from_ == kWell || writes <= failing_from_) return SQLITE_OK;
    ++refused;
    return code_;
  }
  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    auto* base = the_disk->base_;
    const int code = base->xOpen(base, name, file, flags, out);
    if (code != SQLITE_OK || !file->pMethods) return code;
    auto& kind =
        the_disk->kinds_[file->pMethods];  // the log's files have other methods than the database
    if (!kind.real) {
      kind.real = file->pMethods;
      kind.methods = *file->pMethods;
      kind.methods.xWrite = write;
      kind.methods.xSync = sync;
      kind.methods.xTruncate = truncate;
    }
    file->pMethods = &kind.methods;
    return code;
  }
  struct Kind {
    sqlite3_io_methods methods{};  ///< the first member: a file's methods lead to the rest
    const sqlite3_io_methods* real = nullptr;
  };
  static const sqlite3_io_methods& realOf(sqlite3_file* file) {
    return *reinterpret_cast<const Kind*>(file->pMethods)->real;
  }
  static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
    const int code = the_disk->answer();
    return code == SQLITE_OK ? realOf(file).xWrite(file, bytes, count, at) : code;
  }
  static int sync(sqlite3_file* file, int flags) {
    const int code = the_disk->answer();
    return code == SQLITE_OK ? realOf(file).xSync(file, flags) : code;
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    const int code = the_disk->answer();
    return code == SQLITE_OK ? realOf(file).xTruncate(file, size) : code;
  }

  sqlite3_vfs vfs_;
  sqlite3_vfs* base_ = nullptr;
  std::map<const sqlite3_io_methods*, Kind> kinds_;
  int failing_from_ = kWell, code_ = SQLITE_OK;
};

}  // namespace muster::test
