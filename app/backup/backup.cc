// SPDX-License-Identifier: Apache-2.0
#include "app/backup/backup.h"

#include "app/backup/format.h"
#include "app/site/effective_cluster.h"
#include "app/site/state_folder.h"
#include "base/big_endian.h"
#include "base/io/sealed_file.h"
#include "base/json_output.h"
#include "base/version.h"
#include "inventory/inventory.h"
#include "lifecycle/store/store_copy.h"
#include "signer/key_files.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using namespace backup;

constexpr std::uintmax_t kMaxInventoryFileBytes = 16u << 20, kMaxInventoryBytes = 256u << 20;
constexpr std::size_t kMaxInventoryFiles = 10'000;
constexpr std::size_t kMaxKeyFileBytes = 1u << 20;
constexpr std::uintmax_t kMaxIndexBytes = 16u << 20;
constexpr int kKeyLooks = 3;
constexpr std::array kKeyFolders{"keys", "ca"};

Error diskFull(const fs::path& target) {
  return Error(ErrorCode::Unavailable,
               fmt::format("the disk of {} is full: a backup needs room for a copy of the store "
                           "and for itself; nothing was written",
                           target.parent_path().string()));
}

constexpr std::string_view kWorkInfix = ".work-", kWorkSuffix = "XXXXXX";

/// A folder of this process alone, gone with it. It is locked while its process lives: what one
/// that was killed has left holds a store that nobody has encrypted, and is removed by the next.
class WorkFolder {
 public:
  static Result<WorkFolder> make(const fs::path& beside) {
    removeLeftovers(beside);
    auto pattern = fmt::format("{}{}{}", beside.string(), kWorkInfix, kWorkSuffix);
    if (!::mkdtemp(pattern.data()))
      return errno == ENOSPC ? fail(diskFull(beside))
                             : diskError(beside.parent_path(), "written into");
    WorkFolder made(pattern, lock(pattern));
    std::error_code unknown;
    if (made.lock_ < 0 || !fs::exists(made.path_, unknown))
      return fail(ErrorCode::Conflict, fmt::format("another backup to {} begins at this moment; "
                                                   "nothing was written, try again",
                                                   beside.string()));
    return made;
  }
  WorkFolder(WorkFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
    if (lock_ >= 0) ::close(lock_);
  }
  const fs::path& path() const { return path_; }

 private:
  WorkFolder(fs::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  /// -1: somebody else has it, or it is gone.
  static int lock(const fs::path& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    if (fd >= 0) ::close(fd);
    return -1;
  }
  static void removeLeftovers(const fs::path& beside) {
    const auto prefix = beside.filename().string() + std::string(kWorkInfix);
    const auto folder = beside.has_parent_path() ? beside.parent_path() : fs::path(".");
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const auto name = entry->path().filename().string();
      if (!name.starts_with(prefix) || name.size() != prefix.size() + kWorkSuffix.size()) continue;
      const int fd = lock(entry->path());
      if (fd < 0) continue;
      std::error_code ignored;
      fs::remove_all(entry->path(), ignored);
      ::close(fd);
    }
  }

  fs::path path_;
  int lock_ = -1;
};

using Files = std::map<std::string, std::string>;  ///< name in the backup → content

/// STATE/keys, STATE/ca, and which of them there must be; with what the signer holds of them, so
/// that a backup is the same whoever holds them.
Result<Files> keyFiles(const Options& options) {
  const auto& state = options.state;
  Files out;
  TRY(held, signer::signerOf(state));
  if (held && !options.signer_keys)
    return fail(ErrorCode::Denied,
                fmt::format("{} holds keys of this site, which root alone can read beside it; make "
                            "the backup as root: sudo muster backup …",
                            signer::kSignerUser));
  if (held)
    for (const auto& [name, text] : *options.signer_keys)
      out.emplace((fs::path("state") / name).string(), text.reveal());
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

/// Whether `folder` has no room for a copy of the store: SQLite says "full" of either disk.
bool lacksRoom(const fs::path& folder, const std::string& store_url) {
  if (lifecycle::databaseKindOf(store_url) != lifecycle::DatabaseKind::Sqlite) return false;
  std::error_code unknown;
  const auto size = fs::file_size(store_url.substr(store_url.find(':') + 1), unknown);
  if (unknown) return false;
  const auto space = fs::space(folder, unknown);
  return !unknown && space.available < size;
}

/// Keys and a store that belong together: nothing was rotated between.
Result<Files> keysAndStore(const Options& options, const fs::path& copy, int& schema) {
  for (int look = 0; look < kKeyLooks; ++look) {
    TRY(before, keyFiles(options));
    std::error_code ignored;
    fs::remove(copy, ignored);
    TRY(copied, lifecycle::copyStore(options.storeUrl(), copy));
    schema = copied;
    TRY(after, keyFiles(options));
    if (before == after) return after;
  }
  return fail(ErrorCode::Conflict,
              "keys changed while they were read; make the backup when the rotation has ended");
}

/// Everything into the file `sealed`, by way of the store's `copy`.
Result<BackupReport> seal(const Options& options, const fs::path& copy, const fs::path& sealed,
                          const Secret& passphrase) {
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
  report.files = keys.size() + paths.size();
  return report;
}

/// A new backup takes the place of an old one, and of nothing else that somebody keeps.
Result<void> requireReplaceable(const fs::path& target) {
  std::error_code error;
  const auto size = fs::file_size(target, error);
  if (error || size == 0) return {};
  const auto before = io::SealedReader::open(target);
  if (before || before.error().code() != ErrorCode::Corrupt) return {};
  return fail(ErrorCode::InvalidInput,
              fmt::format("{} is there and is no backup that this muster knows ({}); name another "
                          "file, or move it away",
                          target.string(), before.error().text()));
}

}  // namespace

Result<void> takeSignerKeys(Options& options, const fs::path& folder) {
  TRY(held, signer::signerOf(options.state));
  if (!held || ::geteuid() != 0) return {};
  TRY_OK(signer::requireNotLost(folder, signer::kCa, folder / "ca" / "ca.key"));
  TRY_OK(signer::requireNotLost(folder, signer::kCertificatesKey.name,
                                signer::keyFileOf(folder, signer::kCertificatesKey)));
  TRY(keys, signer::readSignerKeys(folder));
  options.signer_keys = std::make_shared<const std::map<std::string, Secret>>(std::move(keys));
  return {};
}

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
  TRY_OK(requireReplaceable(target));
  TRY_OK(requireUsed(options));
  TRY(work, WorkFolder::make(target));
  const auto copy = work.path() / kStoreEntry, sealed = work.path() / "sealed";
  auto report = seal(options, copy, sealed, passphrase);
  if (!report && lacksRoom(work.path(), options.storeUrl())) return fail(diskFull(target));
  TRY_OK(report);
  if (::rename(sealed.c_str(), target.c_str()) != 0) return diskError(target, "written");
  const io::Fd directory(::open(target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid()) ::fsync(directory.get());
  report->bytes = fs::file_size(target, error);
  return report;
}

}  // namespace muster::app
