// SPDX-License-Identifier: Apache-2.0
#include "app/backup/backup.h"
#include "app/backup/format.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "app/site/service_user.h"
#include "app/site/state_folder.h"
#include "app/site/state_lock.h"
#include "base/big_endian.h"
#include "base/io/sealed_file.h"
#include "base/json_input.h"
#include "lifecycle/store/store_copy.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using namespace backup;

constexpr std::size_t kMaxEntryNameBytes = 4096, kMaxManifestBytes = 64 << 10,
                      kMaxEntries = 100'000;

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

/// A volume of its own: its folder's name cannot be given to another.
std::unexpected<Error> isMounted(const fs::path& state) {
  return fail(ErrorCode::InvalidInput,
              fmt::format("{} is a mount point, or part of a container's image, and cannot be "
                          "replaced as a whole; restore into a folder in it, and name that with "
                          "--state (MUSTER_STATE)",
                          state.string()));
}

/// Seen before anything is restored: a database that was filled is not empty the next time.
Result<void> refuseMountPoint(const fs::path& state) {
  struct stat own{}, above{};
  if (::stat(state.c_str(), &own) != 0 || ::stat(state.parent_path().c_str(), &above) != 0 ||
      own.st_dev == above.st_dev)
    return {};
  return isMounted(state);
}

std::unexpected<Error> notInPlace(const fs::path& state) {
  if (errno == EBUSY || errno == EXDEV) return isMounted(state);
  return diskError(state, "put in place");
}

Result<void> putInPlace(Staging& staging, const fs::path& state, RestoreReport& report) {
  if (isEmptyOrMissing(state)) {
    if (::rename(staging.path.c_str(), state.c_str()) != 0) return notInPlace(state);
    staging.keep = true;
    return {};
  }
  auto aside = state;
  aside += fmt::format(".before-restore-{}", std::chrono::system_clock::now().time_since_epoch() /
                                                 std::chrono::seconds(1));
  // Both names change hands in one step: no moment without a state folder.
  if (::renameat2(AT_FDCWD, staging.path.c_str(), AT_FDCWD, state.c_str(), RENAME_EXCHANGE) != 0)
    return notInPlace(state);
  staging.keep = true;
  if (::rename(staging.path.c_str(), aside.c_str()) != 0) aside = staging.path;
  report.replaced = aside;
  return {};
}

/// On a host whose signer holds the site's keys these are the restored ones from now on.
Result<void> giveKeysToSigner(const fs::path& state) {
  const auto service = signer::userOf(signer::kServiceUser),
             own = signer::userOf(signer::kSignerUser);
  struct stat status{};
  if (::geteuid() != 0 || !service || !own || ::stat(state.c_str(), &status) != 0 ||
      status.st_uid != service->uid)
    return {};
  const auto done =
      signer::adoptKeys({state, signer::kSignerFolder, signer::kSignerSocket, service, own, true});
  if (!done)
    return fail(Error(done.error())
                    .within(fmt::format("the state is restored, and its keys are not the signer's "
                                        "yet; when this is mended: /usr/lib/muster/muster-signer "
                                        "adopt {} --replace",
                                        state.string())));
  for (const auto& line : *done) logInfo("restore", "{}", line);
  return {};
}

}  // namespace

Result<RestoreReport> restoreBackup(const Options& options, const fs::path& file,
                                    const Secret& passphrase, bool replace) {
  const auto state = fs::absolute(options.state).lexically_normal();
  TRY(in, io::SealedReader::open(file));
  TRY_OK(readAbout(file, in.about()));
  TRY_OK(in.unlock(passphrase));
  TRY_OK(refuseMountPoint(state));
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
  TRY_OK(giveTree(staging.path, state));  // the service's user, where it has one
  TRY_OK(putInPlace(staging, state, report));
  report.inventory = state / "restored" / "inventory";
  TRY_OK(giveKeysToSigner(state));
  return report;
}

}  // namespace muster::app
