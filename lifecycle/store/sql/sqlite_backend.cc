// SPDX-License-Identifier: Apache-2.0
// SQLite: a file, WAL, synchronous FULL: what a call returned from is on the disk. One writer at a
// time (BEGIN IMMEDIATE). The files are opened by SQLite alone, by each of this process's
// connections; everything else about them is StoreFiles'.
#include "lifecycle/store/sql/backend.h"
#include "lifecycle/store/sql/file_holder.h"
#include "lifecycle/store/sql/schema.h"
#include "lifecycle/store/sql/store_files.h"
#include "lifecycle/store/store_loss.h"

#include <soci/sqlite3/soci-sqlite3.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace muster::lifecycle::sql {
namespace {

using soci::into;

constexpr std::uintmax_t kQuickCheckMaxBytes =
    64u << 20;                              ///< a larger file is only checked as it is read
constexpr int kCacheKib = 64 << 10;         ///< the indexes of a large fleet's journal
constexpr int kCheckpointPages = 8'000;     ///< 32 MB of log before it is copied into the file
constexpr int kApplicationId = 0x6d757374;  ///< "must", in the file's header

sqlite_api::sqlite3* connectionOf(soci::session& sql) {
  auto* backend = static_cast<soci::sqlite3_session_backend*>(
      sql.get_backend());  // ours opened it; the library hides its type
  return backend ? backend->conn_ : nullptr;
}

/// Root is nobody's other: what it cannot write, nobody can.
bool isOfAnother(const std::filesystem::path& file) {
  struct stat found{};
  return ::geteuid() != 0 && ::stat(file.c_str(), &found) == 0 && found.st_uid != ::geteuid();
}

class SqliteBackend final : public Backend {
 public:
  SqliteBackend(std::filesystem::path file, std::chrono::milliseconds busy_timeout)
      : file_(std::move(file)), files_(file_), name_(file_.string()), busy_timeout_(busy_timeout) {}

  const std::string& name() const override { return name_; }
  Result<void> connect(soci::session& sql) override;
  Result<void> connectToRead(soci::session& sql) override;
  Result<void> prepare(soci::session& sql) override;
  Result<void> check(soci::session& sql) override;
  std::optional<Error> loss() const override;
  void abandon(soci::session& sql) override;
  Result<int> version(soci::session& sql) override;
  void setVersion(soci::session& sql, int version) override;
  std::optional<std::string> olderUser(soci::session& sql, int known) override;
  Failure explain(const soci::soci_error& error, soci::session& sql) const override;

  bool keepsStatements() const override { return true; }
  const char* begin() const override { return "BEGIN IMMEDIATE"; }
  const char* nowMs() const override {
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";
  }
  const char* shareRow() const override { return ""; }
  const char* takeRow() const override { return ""; }
  const char* takeFreeRow() const override { return ""; }
  const std::vector<std::pair<std::string_view, std::string_view>>& words() const override {
    static const std::vector<std::pair<std::string_view, std::string_view>> words{
        {"%int", "INTEGER"},
        {"%real", "REAL"},
        {"%serial", "INTEGER PRIMARY KEY"},
        {"%log_serial", "INTEGER PRIMARY KEY AUTOINCREMENT"},
        {"%clustered", "WITHOUT ROWID"}};
    return words;
  }

 private:
  /// Never takes a store that was lost for a new one: what it held (quarantine, permissions, the
  /// log) would be gone without a word.
  Result<void> requireNotLost() const;
  /// Once the files are open: a lock stands for the life of the connection, so they are the ones
  /// that their names say.
  Result<void> remember(soci::session& sql);
  static WalIndex indexOf(soci::session& sql);
  Error explain(int code, const std::string& text) const;
  static int number(soci::session& sql, const char* query) {
    int value = 0;
    sql << query, into(value);
    return value;
  }

  std::filesystem::path file_;
  StoreFiles files_;
  std::string name_;
  std::chrono::milliseconds busy_timeout_;
};

Failure SqliteBackend::explain(const soci::soci_error& error, soci::session&) const {
  const auto* own = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
  const int code = own ? own->result() : SQLITE_ERROR;
  return {explain(code, sqlite_api::sqlite3_errstr(code))};
}

Error SqliteBackend::explain(int code, const std::string& text) const {
  // SQLite reads a store in use only with the shared memory that it may write beside it, and
  // without that it would not see what another process has committed.
  constexpr std::string_view kToLook =
      "to look only, copy its folder to a disk with room while no muster works with it, and name "
      "the copy by MUSTER_STATE";
  // Who may not read it must not be led to copies of it: keys lie beside it.
  constexpr std::string_view kToAsk =
      "it belongs to another user: run the command as root or as that user, or ask the server that "
      "works with it (--server, or its socket, for members of its group)";
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(
          ErrorCode::Unavailable,
          fmt::format("{} is locked by another process; let it finish, or find it with `fuser {}`",
                      name_, name_));
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return Error(ErrorCode::Unavailable,
                   fmt::format("{} cannot be written by this user ({}); nothing was changed; check "
                               "its owner and whether the file system "
                               "is read-only; {}",
                               name_, text, isOfAnother(file_) ? kToAsk : kToLook))
          .retryable(false);
    case SQLITE_CANTOPEN:
      return Error(ErrorCode::Unavailable,
                   fmt::format(
                       "{} cannot be opened ({}); check that its folder exists and may be written",
                       name_, text))
          .retryable(false);
    case SQLITE_FULL:
      return Error(ErrorCode::Unavailable,
                   fmt::format("there is no room for {} ({}); nothing was written and nothing is "
                               "lost; make room, then run the same "
                               "command again",
                               name_, text))
          .retryable(false);
    case SQLITE_IOERR:
      return Error(ErrorCode::Unavailable,
                   fmt::format("{} could not be read or written ({}); check that its disk has room "
                               "and is healthy (dmesg); {}",
                               name_, text, kToLook))
          .retryable(false);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error(
          ErrorCode::Corrupt,
          fmt::format("{} is damaged or not a muster store ({}); restore it from a backup, or move "
                      "it away together with {}: muster then observes everything anew, without "
                      "quarantine, permissions and the log",
                      name_, text, (file_.parent_path() / kMarkOfUse).string()));
    case SQLITE_CONSTRAINT:
      return Error(ErrorCode::Conflict, text);
    default:
      return Error(ErrorCode::Internal, fmt::format("{}: {} (SQLite {})", name_, text, code));
  }
}

std::optional<Error> SqliteBackend::loss() const {
  const auto loss = files_.loss();
  if (!loss) return std::nullopt;
  return Error(ErrorCode::Unavailable, files_.describe(*loss)).retryable(false);
}

/// The last connection to close would copy its log into the database and delete the log by its
/// name, which may be another process's.
void SqliteBackend::abandon(soci::session& sql) {
  if (auto* own = connectionOf(sql))
    sqlite_api::sqlite3_db_config(own, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

/// SQLite's own mapping, which stands as long as this connection.
WalIndex SqliteBackend::indexOf(soci::session& sql) {
  sqlite_api::sqlite3_file* file = nullptr;
  if (sqlite_api::sqlite3_file_control(connectionOf(sql), "main", SQLITE_FCNTL_FILE_POINTER,
                                       static_cast<void*>(&file)) != SQLITE_OK ||
      !file || !file->pMethods)
    return {};
  const auto& methods = *file->pMethods;
  constexpr int kWithSharedMemory = 2;
  void volatile* region = nullptr;
  if (methods.iVersion < kWithSharedMemory || !methods.xShmMap ||
      methods.xShmMap(file, 0, WalIndex::kRegionBytes, 0, &region) != SQLITE_OK)
    return {};
  const WalIndex index(region);
  if (const auto copied = index.read();
      copied && !copied->settled()) {  // somebody was killed, or the log of a killed one was read
    int busy = 0, frames = 0, done = 0;
    sql << "PRAGMA wal_checkpoint(PASSIVE)", into(busy), into(frames), into(done);
  }
  return index;
}

Result<void> SqliteBackend::remember(soci::session& sql) {
  (void)number(sql, "SELECT count(*) FROM sqlite_master");  // SQLite opens the log with the first
                                                            // page that it reads
  int moved = 0;
  sqlite_api::sqlite3_file_control(connectionOf(sql), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved != 0)
    return fail(
        Error(ErrorCode::Unavailable, files_.describe({StoreFile::Database, LossKind::Replaced}))
            .retryable(false));
  files_.remember();
  files_.watchContent(indexOf(sql));
  return {};
}

/// The mark first: a store that another process makes just now has none yet.
Result<void> SqliteBackend::requireNotLost() const {
  std::error_code error;
  const auto mark = file_.parent_path() / kMarkOfUse;
  if (!std::filesystem::exists(mark, error)) return {};
  const bool is_there = std::filesystem::exists(file_, error);
  if (error || (is_there && (!std::filesystem::is_regular_file(file_, error) ||
                             std::filesystem::file_size(file_, error) > 0)))
    return {};  // what else may be wrong is said when it is opened
  return fail(
      ErrorCode::Corrupt,
      fmt::format("{} is {}, but its folder was in use: nothing was done. Restore it from a "
                  "backup, or name "
                  "the store that was used (--store). "
                  "Without one, quarantine, permissions, rollouts and the log are lost; to begin "
                  "anew nevertheless, move {} away",
                  name_, is_there ? "empty" : "missing", mark.string()));
}

Result<void> SqliteBackend::connect(soci::session& sql) {
  if (auto lost = loss()) return fail(std::move(*lost));
  TRY_OK(requireNotLost());
  // SQLite would create the file for everybody to read, and would open a read-only one without a
  // word.
  if (const auto refused = files_.prepare()) {
    if (refused->refusal == FileRefusal::NotARegularFile)
      return fail(explain(SQLITE_CANTOPEN, "not a regular file"));
    return fail(
        explain(refused->refusal == FileRefusal::ReadOnly ? SQLITE_READONLY : SQLITE_CANTOPEN,
                std::strerror(refused->error)));
  }
  sql.open(soci::sqlite3, fmt::format("db=\"{}\"", name_));
  int ignored = 0;
  sql << fmt::format("PRAGMA busy_timeout = {}", busy_timeout_.count()), into(ignored);
  sql << "PRAGMA synchronous = FULL";
  sql << "PRAGMA foreign_keys = ON";
  sql << fmt::format("PRAGMA cache_size = -{}", kCacheKib);
  sql << fmt::format("PRAGMA wal_autocheckpoint = {}", kCheckpointPages), into(ignored);
  return {};
}

/// Never creates a file, nor opens another than the first connection has.
Result<void> SqliteBackend::connectToRead(soci::session& sql) {
  if (auto lost = loss()) return fail(std::move(*lost));
  sql.open(soci::sqlite3, fmt::format("db=\"{}\"", name_));
  int ignored = 0;
  sql << fmt::format("PRAGMA busy_timeout = {}", busy_timeout_.count()), into(ignored);
  sql << "PRAGMA query_only = ON";
  return {};
}

Result<int> SqliteBackend::version(soci::session& sql) {
  const int application = number(sql, "PRAGMA application_id");
  const int tables = number(sql, "SELECT count(*) FROM sqlite_master");
  if (application != kApplicationId && (application != 0 || tables != 0))
    return fail(
        ErrorCode::Corrupt,
        fmt::format("{} is a database of another program; choose another state folder", name_));
  return number(sql, "PRAGMA user_version");
}

void SqliteBackend::setVersion(soci::session& sql, int version) {
  sql << fmt::format("PRAGMA application_id = {}", kApplicationId);
  sql << fmt::format("PRAGMA user_version = {}", version);
}

/// Who runs this very program knows what it knows.
std::optional<std::string> SqliteBackend::olderUser(soci::session&, int) {
  const auto holder = otherHolderOf(file_);
  if (!holder || isSameProgram(*holder)) return std::nullopt;
  return describeProcess(*holder);
}

Result<void> SqliteBackend::prepare(soci::session& sql) {
  std::string mode;
  sql << "PRAGMA journal_mode = WAL", into(mode);
  if (mode == "wal") return remember(sql);
  return fail(
      Error(ErrorCode::Unavailable, fmt::format("{} cannot use a write-ahead log (its file system "
                                                "lacks shared memory); put it on a local disk",
                                                name_))
          .retryable(false));
}

Result<void> SqliteBackend::check(soci::session& sql) {
  std::error_code ignored;
  if (std::filesystem::file_size(file_, ignored) > kQuickCheckMaxBytes) return {};
  std::string verdict;
  sql << "PRAGMA quick_check(1)", into(verdict);
  if (verdict != "ok") return fail(explain(SQLITE_CORRUPT, verdict));
  return {};
}

}  // namespace

std::unique_ptr<Backend> sqliteBackend(std::filesystem::path file,
                                       std::chrono::milliseconds busy_timeout) {
  return std::make_unique<SqliteBackend>(std::move(file), busy_timeout);
}

}  // namespace muster::lifecycle::sql
