// SPDX-License-Identifier: Apache-2.0
#include "app/backup.h"

#include "app/actor.h"
#include "app/audit.h"
#include "app/effective_cluster.h"
#include "app/site_keys.h"
#include "app/state_folder.h"
#include "app/state_lock.h"
#include "base/big_endian.h"
#include "base/io/sealed_file.h"
#include "base/io/trusted_keys.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/version.h"
#include "lifecycle/store/store_copy.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "muster-backup/1";
constexpr const char* kStoreEntry = "store";
constexpr std::size_t kPieceBytes = 1 << 20, kMaxEntryNameBytes = 4096,
                      kMaxManifestBytes = 64 << 10;
constexpr std::uintmax_t kMaxInventoryFileBytes = 16u << 20, kMaxInventoryBytes = 256u << 20;
constexpr std::size_t kMaxInventoryFiles = 10'000, kMaxEntries = 100'000;
constexpr std::size_t kMaxKeyFileBytes = 1u << 20;
constexpr std::uintmax_t kMaxIndexBytes = 16u << 20;
constexpr int kKeyLooks = 3;
constexpr std::array kKeyFolders{"keys", "ca"};
constexpr const char* kKeysMade = "keys.made";  ///< which keys there must be (site_keys.h)

std::unexpected<Error> diskError(const fs::path& file, const char* what) {
  return fail(Error(ErrorCode::Unavailable,
                    fmt::format("{} cannot be {}: {}", file.string(), what, std::strerror(errno)))
                  .retryable(false));
}

/// A folder of this process alone, gone with it.
class WorkFolder {
 public:
  static Result<WorkFolder> make(const fs::path& beside) {
    auto pattern = beside.string() + ".work-XXXXXX";
    if (!::mkdtemp(pattern.data())) return diskError(beside.parent_path(), "written into");
    return WorkFolder(pattern);
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

using Files = std::map<std::string, std::string>;  ///< name in the backup → content

/// STATE/keys, STATE/ca, and which of them there must be.
Result<Files> keyFiles(const fs::path& state) {
  Files out;
  std::error_code error;
  if (fs::exists(state / kKeysMade, error)) {
    TRY(made, io::readFile(state / kKeysMade, kMaxKeyFileBytes));
    out.emplace((fs::path("state") / kKeysMade).string(), std::move(made));
  }
  for (const auto* folder : kKeyFolders) {
    if (!fs::exists(state / folder, error)) continue;
    for (fs::recursive_directory_iterator entry(state / folder, error), end; !error && entry != end;
         entry.increment(error)) {
      if (!entry->is_regular_file(error) || entry->is_symlink(error)) continue;
      TRY(content, io::readFile(entry->path(), kMaxKeyFileBytes));
      out.emplace((fs::path("state") / fs::relative(entry->path(), state)).string(),
                  std::move(content));
    }
    if (error)
      return fail(ErrorCode::Denied,
                  fmt::format("{} cannot be read: {}", (state / folder).string(), error.message()));
  }
  return out;
}

/// Files as they lie on the disk: name in the backup → path.
using Paths = std::map<std::string, fs::path>;

Result<void> addInventory(const Options& options, Paths& paths, BackupReport& report) {
  const auto inventory = fs::absolute(options.inventory);
  std::error_code error;
  if (!fs::is_regular_file(inventory, error)) {
    report.left_out.push_back(fmt::format("{}: is not there", inventory.string()));
    return {};
  }
  const auto folder = inventory.parent_path();
  const auto state = fs::weakly_canonical(options.state, error);
  const auto cache = fs::weakly_canonical(options.cache, error);
  std::uintmax_t bytes = 0;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    const auto relative = fs::relative(entry->path(), folder).string();
    std::error_code unknown;
    if (entry->is_directory(unknown) && !entry->is_symlink(unknown)) {
      const auto here = fs::weakly_canonical(entry->path(), unknown);
      if (name == ".git" || here == state || here == cache) entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_symlink(unknown) || !entry->is_regular_file(unknown)) {
      report.left_out.push_back(relative + ": no regular file");
      continue;
    }
    const auto size = entry->file_size(unknown);
    if (size > kMaxInventoryFileBytes) {
      report.left_out.push_back(
          fmt::format("{}: larger than {} MiB", relative, kMaxInventoryFileBytes >> 20));
      continue;
    }
    bytes += size;
    paths.emplace((fs::path("inventory") / relative).string(), entry->path());
    if (bytes > kMaxInventoryBytes || paths.size() > kMaxInventoryFiles)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("the folder of the inventory, {}, holds more than {} files or {} "
                              "MiB; give the inventory a folder of its own",
                              folder.string(), kMaxInventoryFiles, kMaxInventoryBytes >> 20));
  }
  if (error)
    return fail(ErrorCode::Denied,
                fmt::format("{} cannot be read: {}", folder.string(), error.message()));
  return {};
}

/// What was in which image; the packs are large, and are built or copied.
void addImageIndexes(const Options& options, Paths& paths) {
  const auto images = options.cache / "images";
  std::error_code error;
  for (fs::recursive_directory_iterator entry(images, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_symlink(unknown) || !entry->is_regular_file(unknown)) continue;
    if (entry->path().extension() != ".json" || entry->file_size(unknown) > kMaxIndexBytes)
      continue;
    paths.emplace((fs::path("images") / fs::relative(entry->path(), images)).string(),
                  entry->path());
  }
}

// ---- the entries: 4 bytes length and the name, 8 bytes length and the content; an empty name
// ends.

Result<void> writeHead(io::SealedWriter& out, const std::string& name, std::uint64_t size) {
  return out.write(bigEndian(name.size(), 4) + name + bigEndian(size, 8));
}

/// A file that grows or shrinks meanwhile is read again by the next backup; here it must keep its
/// size.
Result<void> writeFile(io::SealedWriter& out, const std::string& name, const fs::path& file) {
  const io::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return diskError(file, "read");
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::InvalidInput, fmt::format("{} is no regular file", file.string()));
  auto left = static_cast<std::uint64_t>(status.st_size);
  TRY_OK(writeHead(out, name, left));
  std::string piece(kPieceBytes, '\0');
  while (left > 0) {
    const auto n = ::read(fd.get(), piece.data(), std::min<std::uint64_t>(left, piece.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return diskError(file, "read");
    if (n == 0)
      return fail(ErrorCode::Unavailable,
                  fmt::format("{} became shorter while it was read", file.string()));
    TRY_OK(out.write(std::string_view(piece).substr(0, static_cast<std::size_t>(n))));
    left -= static_cast<std::uint64_t>(n);
  }
  return {};
}

std::string aboutOf(const Options& options, const std::string& cluster, int schema) {
  return jsonText(nlohmann::json{
      {"format", kFormat},
      {"muster", kVersion},
      {"schema", schema},
      {"store", lifecycle::databaseKindOf(options.storeUrl()) == lifecycle::DatabaseKind::Sqlite
                    ? "sqlite"
                    : "postgresql"},
      {"cluster", cluster},
      {"made_at", toString(SystemClock().now())}});
}

std::string clusterName(const Options& options) {
  auto loaded = loadDeclared(options);
  return loaded.cluster ? loaded.cluster->name : std::string();
}

/// Keys and a store that belong together: nothing was rotated between.
Result<Files> keysAndStore(const Options& options, const fs::path& copy, int& schema) {
  for (int look = 0; look < kKeyLooks; ++look) {
    TRY(before, keyFiles(options.state));
    std::error_code ignored;
    fs::remove(copy, ignored);
    TRY(copied, lifecycle::copyStore(options.storeUrl(), copy));
    schema = copied;
    TRY(after, keyFiles(options.state));
    if (before == after) return after;
  }
  return fail(ErrorCode::Conflict,
              "keys changed while they were read; make the backup when the rotation has ended");
}

}  // namespace

Result<BackupReport> makeBackup(const Options& options, const fs::path& file,
                                const Secret& passphrase) {
  const auto target = fs::absolute(file);
  std::error_code error;
  const auto state = fs::weakly_canonical(options.state, error);
  const auto folder = fs::weakly_canonical(target.parent_path(), error);
  if (const auto [end, rest] =
          std::mismatch(state.begin(), state.end(), folder.begin(), folder.end());
      end == state.end())
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is in the state folder, which is what may get lost; name a file "
                            "elsewhere",
                            target.string()));
  if (fs::exists(fs::symlink_status(target, error)) && !fs::is_regular_file(target, error))
    return fail(ErrorCode::InvalidInput, fmt::format("{} is no regular file", target.string()));
  TRY_OK(requireUsed(options));
  TRY(work, WorkFolder::make(target));
  const auto copy = work.path() / kStoreEntry, sealed = work.path() / "sealed";
  int schema = 0;
  TRY(keys, keysAndStore(options, copy, schema));
  BackupReport report;
  Paths paths;
  TRY_OK(addInventory(options, paths, report));
  addImageIndexes(options, paths);
  paths.emplace(kStoreEntry, copy);
  const auto about = aboutOf(options, clusterName(options), schema);
  TRY(out, io::SealedWriter::create(sealed, passphrase, about));
  // Once more inside, where it cannot be changed: what `about` shows outside is for people.
  TRY_OK(writeHead(out, "about", about.size()));
  TRY_OK(out.write(about));
  for (const auto& [name, content] : keys) {
    TRY_OK(writeHead(out, name, content.size()));
    TRY_OK(out.write(content));
  }
  for (const auto& [name, path] : paths) TRY_OK(writeFile(out, name, path));
  TRY_OK(out.write(bigEndian(0, 4)));
  TRY_OK(out.finish());
  if (::rename(sealed.c_str(), target.c_str()) != 0) return diskError(target, "written");
  const io::Fd directory(::open(target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid()) ::fsync(directory.get());
  report.files = keys.size() + paths.size();
  report.bytes = fs::file_size(target, error);
  return report;
}

namespace {

/// Names that this program writes: nothing that leads elsewhere.
bool isEntryName(const std::string& name) {
  const fs::path path(name);
  if (name.find('\0') != std::string::npos || !path.is_relative() || name.ends_with('/'))
    return false;
  if (std::ranges::any_of(path, [](const fs::path& part) { return part == ".." || part == "."; }))
    return false;
  const auto first = path.begin()->string();
  return name == "about" || name == kStoreEntry || name == fmt::format("state/{}", kKeysMade) ||
         name.starts_with("state/keys/") || name.starts_with("state/ca/") ||
         ((first == "inventory" || first == "images") && first.size() + 1 < name.size());
}

/// In the folder that becomes the state folder.
fs::path placeOf(const fs::path& folder, const std::string& name) {
  if (name == kStoreEntry) return folder / "muster.db";
  if (name.starts_with("state/")) return folder / name.substr(std::strlen("state/"));
  return folder / "restored" / name;
}

Result<void> writeEntry(io::SealedReader& in, const fs::path& file, std::uint64_t size) {
  TRY_OK(io::makeDirs(file.parent_path(), kStateFolderMode));
  const io::Fd fd(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kStateFileMode));
  if (!fd.valid()) return diskError(file, "made");
  while (size > 0) {
    TRY(piece, in.read(std::min<std::uint64_t>(size, kPieceBytes)));
    size -= piece.size();
    for (std::string_view left = piece; !left.empty();) {
      const auto n = ::write(fd.get(), left.data(), left.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return diskError(file, "written");
      left.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  if (::fsync(fd.get()) != 0) return diskError(file, "written");
  return {};
}

Result<nlohmann::json> readAbout(const fs::path& file, const std::string& text) {
  auto about = jsonOrNone(text, kKeptJson);
  const auto format = about.is_object() ? about.value("format", std::string()) : std::string();
  if (format != kFormat)
    return fail(ErrorCode::Corrupt,
                format.starts_with("muster-backup/")
                    ? fmt::format("{} is a backup of a newer muster ({}); use that muster",
                                  file.string(), format)
                    : fmt::format("{} is no backup of muster", file.string()));
  if (!about.contains("schema") || !about["schema"].is_number_integer())
    return fail(ErrorCode::Corrupt, fmt::format("{} does not say its schema", file.string()));
  const auto schema = about["schema"].get<int>();
  if (schema > lifecycle::knownSchema())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("{} was made by muster {} (schema {}, this one knows {}); use that "
                    "muster or a newer one",
                    file.string(), about.value("muster", "?"), schema, lifecycle::knownSchema()));
  return about;
}

/// All entries into `folder`. Answers what the backup says of itself.
Result<nlohmann::json> unpack(io::SealedReader& in, const fs::path& file, const fs::path& folder,
                              RestoreReport& report) {
  std::optional<nlohmann::json> about;
  std::set<std::string> seen;
  for (;;) {
    TRY(length, in.read(4));
    const auto name_bytes = fromBigEndian(length);
    if (name_bytes == 0) break;
    if (name_bytes > kMaxEntryNameBytes || seen.size() > kMaxEntries)
      return fail(ErrorCode::Corrupt, fmt::format("{} is no backup of muster", file.string()));
    TRY(name, in.read(name_bytes));
    TRY(size_text, in.read(8));
    const auto size = fromBigEndian(size_text);
    if (!isEntryName(name) || !seen.insert(name).second || (seen.size() == 1) != (name == "about"))
      return fail(ErrorCode::Corrupt, fmt::format("{} is no backup of muster", file.string()));
    if (name == "about") {
      if (size > kMaxManifestBytes)
        return fail(ErrorCode::Corrupt, fmt::format("{} is no backup of muster", file.string()));
      TRY(text, in.read(size));
      TRY(read, readAbout(file, text));
      TRY_OK(io::makeDirs(folder / "restored", kStateFolderMode));
      TRY_OK(io::writeFileAtomic(folder / "restored" / "about.json", text, kStateFileMode));
      about = std::move(read);
      continue;
    }
    TRY_OK(writeEntry(in, placeOf(folder, name), size));
    ++report.files;
  }
  TRY_OK(in.expectEnd());
  if (!about || !seen.contains(kStoreEntry))
    return fail(ErrorCode::Corrupt, fmt::format("{} is no backup of muster", file.string()));
  return std::move(*about);
}

Result<void> syncFolders(const fs::path& folder) {
  std::vector<fs::path> all{folder, folder.parent_path()};
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.is_directory(error)) all.push_back(entry.path());
  for (const auto& each : all) {
    const io::Fd fd(::open(each.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid() || ::fsync(fd.get()) != 0) return diskError(each, "written");
  }
  return {};
}

/// Where the state folder is made before it gets its name. One restore at a time: a folder of one
/// that was killed is removed.
struct Staging {
  fs::path path;
  io::Fd lock;
  bool keep = false;
  Staging() = default;
  Staging(Staging&& other) noexcept
      : path(std::exchange(other.path, {})), lock(std::move(other.lock)), keep(other.keep) {}
  ~Staging() {
    std::error_code ignored;
    if (!keep && !path.empty()) fs::remove_all(path, ignored);
  }
};

Result<Staging> makeStaging(const fs::path& state) {
  Staging out;
  auto path = state;
  path += ".restoring";
  const auto locked = [&path]() -> Result<io::Fd> {
    io::Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid()) return diskError(path, "opened");
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
      return fail(ErrorCode::Conflict,
                  fmt::format("another restore works in {}; let it end", path.string()));
    return fd;
  };
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) {
    TRY(old, locked());
    (void)old;  // held while it is removed
    fs::remove_all(path, error);
  }
  if (state.has_parent_path()) TRY_OK(io::makeDirs(state.parent_path()));
  if (::mkdir(path.c_str(), kStateFolderMode) != 0) return diskError(path, "made");
  TRY(lock, locked());
  out.path = path;
  out.lock = std::move(lock);
  return out;
}

bool isEmptyOrMissing(const fs::path& state) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(state, error))) return true;
  return fs::is_directory(state, error) && fs::is_empty(state, error) && !error;
}

struct StateInUse {
  io::FileLock instance;
  io::FileLock request;
};
/// Nobody works in the folder that is moved aside. It keeps its locks until it is gone.
Result<StateInUse> closeOld(const fs::path& state) {
  TRY(instance, acquireMonitorInstance(state));
  TRY(request, requestLock(state));
  return StateInUse{std::move(instance), std::move(request)};
}

Result<void> putInPlace(Staging& staging, const fs::path& state, RestoreReport& report) {
  if (isEmptyOrMissing(state)) {
    if (::rename(staging.path.c_str(), state.c_str()) == 0) {
      staging.keep = true;
      return {};
    }
    if (errno == EBUSY || errno == EXDEV)
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("{} is a mount point, and cannot be replaced as a whole; restore into "
                      "a folder in it, and name that with --state",
                      state.string()));
    return diskError(state, "put in place");
  }
  auto aside = state;
  aside += fmt::format(".before-restore-{}", std::chrono::system_clock::now().time_since_epoch() /
                                                 std::chrono::seconds(1));
  // Both names change hands in one step: no moment without a state folder.
  if (::renameat2(AT_FDCWD, staging.path.c_str(), AT_FDCWD, state.c_str(), RENAME_EXCHANGE) != 0)
    return diskError(state, "put in place");
  staging.keep = true;
  if (::rename(staging.path.c_str(), aside.c_str()) != 0) aside = staging.path;
  report.replaced = aside;
  return {};
}

}  // namespace

Result<RestoreReport> restoreBackup(const Options& options, const fs::path& file,
                                    const Secret& passphrase, bool replace) {
  const auto state = fs::absolute(options.state).lexically_normal();
  TRY(in, io::SealedReader::open(file));
  TRY_OK(readAbout(file, in.about()));
  TRY_OK(in.unlock(passphrase));
  [[maybe_unused]] std::optional<StateInUse> old;  // held until the folder has moved
  if (!isEmptyOrMissing(state)) {
    if (!replace)
      return fail(ErrorCode::Conflict,
                  fmt::format("{} is not empty, so nothing was restored; --replace moves it aside",
                              state.string()));
    TRY(closed, closeOld(state));
    old = std::move(closed);
  }
  TRY(staging, makeStaging(state));
  RestoreReport report;
  TRY(about, unpack(in, file, staging.path, report));
  report.cluster = about.value("cluster", "");
  report.made_at = about.value("made_at", "");
  report.made_by = about.value("muster", "");
  report.schema = about.value("schema", 0);
  const bool postgres = about.value("store", "") == "postgresql";
  if (postgres == options.store.empty())
    return fail(ErrorCode::InvalidInput,
                postgres ? "the backup is of a PostgreSQL store: name a new, empty database with "
                           "--store postgresql://…"
                         : "the backup is of a SQLite store: leave --store (MUSTER_STORE) out");
  const auto why = fmt::format("given up: restored from the backup of {}", report.made_at);
  const auto database = staging.path / "muster.db";
  if (postgres) {
    TRY_OK(syncFolders(staging.path));
    TRY_OK(lifecycle::restorePostgres(options.storeUrl(), database, report.schema, why));
    std::error_code ignored;
    fs::remove(database, ignored);
    fs::remove(database.string() + ".sql", ignored);
  } else {
    TRY_OK(lifecycle::openSqliteStore(database));
    TRY_OK(lifecycle::makeRestored(database, why));
    TRY(store, lifecycle::openSqliteStore(database));
    TRY_OK(addNote(*store, lifecycle::Subject::cluster(),
                   fmt::format("restored from the backup of {} (muster {}): what was under way is "
                               "given up, unused permissions to wipe are taken back",
                               report.made_at, report.made_by)));
  }
  TRY_OK(syncFolders(staging.path));
  TRY_OK(putInPlace(staging, state, report));
  report.inventory = state / "restored" / "inventory";
  return report;
}

Result<std::vector<StoreCheckLine>> checkStore(const Options& options) {
  std::vector<StoreCheckLine> out;
  TRY_OK(requireUsed(options));
  TRY(examined, lifecycle::examineStore(options.storeUrl()));
  out.push_back(
      {"schema", true,
       fmt::format("{} (this muster works with {})", examined.schema, lifecycle::knownSchema())});
  std::string problems;
  for (const auto& problem : examined.problems)
    problems += (problems.empty() ? "" : "; ") + problem;
  out.push_back({"integrity", examined.problems.empty(),
                 problems.empty() ? "every page and index was read"
                                  : problems + "; restore a backup: docs/backup.md"});
  if (examined.schema != lifecycle::knownSchema()) {
    out.push_back({"journal", true, "not read: the store is migrated when muster next works"});
    return out;
  }
  const auto audit = verifyAudit(options, {});
  out.push_back({"journal", audit && audit->ok(),
                 !audit        ? audit.error().str()
                 : audit->ok() ? "its chain of hashes is whole"
                               : "its chain is broken: muster audit verify"});
  TRY(store, openStoreForReading(options));
  for (const auto& row : kKeyPurposes) {
    StoreCheckLine line{fmt::format("key {}", row.name), true, ""};
    const auto key = publicKeyOf(options.state, row.purpose);
    TRY(agreed, store->getValue(std::string(row.agreed)));
    if (!key) {
      const bool never = key.error().code() == ErrorCode::NotFound && !agreed;
      line.ok = never;
      line.text = never ? "none yet" : key.error().str();
    } else {
      const auto ids = io::publicKeyIds(*key);
      line.ok = !agreed || std::ranges::find(ids, *agreed) != ids.end();
      line.text = line.ok ? fmt::format("{}", ids.empty() ? "?" : ids.front())
                          : fmt::format(
                                "{} here, but the site's is {}: copy keys/{} from the host "
                                "that served last",
                                ids.empty() ? "?" : ids.front(), *agreed, row.file);
    }
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace muster::app
