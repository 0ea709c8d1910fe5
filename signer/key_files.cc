// SPDX-License-Identifier: Apache-2.0
#include "signer/key_files.h"

#include "base/io/files.h"
#include "base/io/trusted_keys.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace muster::signer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCaName = "muster CA";
constexpr std::size_t kMaxKeyBytes = 1u << 16;
constexpr unsigned kFolderMode = 0700, kFileMode = 0600, kOfOthers = 0077;

fs::path keysOf(const fs::path& folder) { return folder / "keys"; }
fs::path previousOf(const fs::path& folder, KeyFile key) {
  return keysOf(folder) / fmt::format("{}.previous.pub", fs::path(key.file).stem().string());
}
fs::path retiredOf(const fs::path& folder, KeyFile key, const std::string& id) {
  return keysOf(folder) / "retired" / fmt::format("{}-{}.pub", key.name, id);
}

/// The key before, unless it is the one that still signs: a rotation was cut off before it had
/// begun.
Result<std::string> previousPem(const fs::path& folder, KeyFile key,
                                const std::string& present_id) {
  auto text = io::readFile(previousOf(folder, key), kMaxKeyBytes);
  if (!text && text.error().code() == ErrorCode::NotFound) return std::string();
  if (!text) return fail(std::move(text).error());
  const auto pem = io::publicPems(*text).front();
  return io::publicKeyIds(pem).front() == present_id ? std::string() : pem;
}

/// What was made here once. Beside the keys' folder, so that it outlives that.
constexpr const char* kMadeFile = "keys.made";
constexpr const char* kSignerFile = "keys.signer";
constexpr std::size_t kMaxMadeBytes = 4096;

Result<std::string> madeOnce(const fs::path& folder) {
  auto text = io::readFile(folder / kMadeFile, kMaxMadeBytes);
  if (!text && text.error().code() == ErrorCode::NotFound) return std::string();
  return text;
}

bool lists(const std::string& made, std::string_view name) {
  return ("\n" + made).find(fmt::format("\n{}\n", name)) != std::string::npos;
}

Result<void> noteMade(const fs::path& folder, std::string_view name) {
  TRY(made, madeOnce(folder));
  if (lists(made, name)) return {};
  return io::writeFileAtomic(folder / kMadeFile, made + std::string(name) + "\n", kFileMode);
}

constexpr std::size_t kTemporaryLetters = 6;  ///< of io::writeFileAtomic, after mkostemp(3)

/// Whether the name may be that of a write that was killed. No person's "….pem.backup" or date.
bool isTemporaryOf(const std::string& name, const std::string& file) {
  if (name.size() != file.size() + 1 + kTemporaryLetters || !name.starts_with(file + "."))
    return false;
  const auto letters = name.substr(file.size() + 1);
  const auto all = [&letters](int (*is)(int)) {
    return std::ranges::all_of(letters, [is](unsigned char c) { return is(c) != 0; });
  };
  return all(std::isalnum) && !all(std::islower) && !all(std::isdigit);
}

/// Private keys that a killed rotation has left, and that never signed anything. What holds a key
/// that is or was in use, as a person's copy does, stays. Only while nobody else rotates.
Result<void> removeLeftovers(const fs::path& folder, KeyFile key, const io::SigningKey& present) {
  const std::string file(key.file);
  const auto known = io::publicKeyIds(present.public_pem);
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(keysOf(folder), error)) {
    if (!isTemporaryOf(entry.path().filename().string(), file)) continue;
    if (!fs::is_regular_file(entry.symlink_status(error))) continue;
    const auto left = io::SigningKey::loadOrCreate(entry.path());
    const bool is_in_use = left && (std::ranges::find(known, left->id()) != known.end() ||
                                    fs::exists(retiredOf(folder, key, left->id()), error));
    if (!is_in_use) leftovers.push_back(entry.path());
  }
  for (const auto& leftover : leftovers)
    if (!fs::remove(leftover, error) && error)
      return fail(ErrorCode::Unavailable,
                  fmt::format("cannot remove {}, the rest of a rotation that was killed: {}",
                              leftover.string(), error.message()));
  return {};
}

}  // namespace

fs::path keyFileOf(const fs::path& folder, KeyFile key) { return keysOf(folder) / key.file; }
fs::path publicFileOf(const fs::path& state, KeyFile key) {
  return keysOf(state) / fmt::format("{}.pub", fs::path(key.file).stem().string());
}

/// A new key in the place of a lost one would say nothing, and void what the old one has signed.
Result<void> requireNotLost(const fs::path& folder, std::string_view name, const fs::path& file) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error))) return {};
  TRY(made, madeOnce(folder));
  if (!lists(made, name)) return {};
  const auto anew = name == kCa
                        ? std::string(
                              "Without one every node has to be imaged again, by a new state "
                              "folder: they know the CA by its fingerprint (docs/keys.md)")
                        : fmt::format(
                              "If it is lost for good, what it has signed counts no more; make "
                              "another: muster key rotate {} --lost",
                              name);
  return fail(ErrorCode::Conflict,
              fmt::format("{} is missing, and was here: nothing was done. Restore it from a backup "
                          "or from the site's other host. {}",
                          file.string(), anew));
}

namespace {

/// A link leads to where somebody else may decide what the key is. Errors: Denied
Result<void> requirePrivate(const fs::path& file) {
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0) return {};  // reading it says what is wrong
  if (S_ISLNK(status.st_mode))
    return fail(ErrorCode::Denied,
                fmt::format("{} is a link: a private key is a file of its own. Look at where it "
                            "leads (ls -l {}), and put the key itself there",
                            file.string(), file.string()));
  if (!S_ISREG(status.st_mode)) return {};  // reading it says what it is
  if ((status.st_mode & kOfOthers) == 0) return {};
  return fail(ErrorCode::Denied,
              fmt::format("{} has mode {:04o}: other users could read the private key, and sign as "
                          "this site. chmod 600 {}; and if one may have read it, see \"When a key "
                          "was stolen\" in docs/keys.md",
                          file.string(), status.st_mode & 07777u, file.string()));
}

bool areThere(const fs::path& folder, std::string_view name,
              std::initializer_list<fs::path> files) {
  std::error_code error;
  const auto is_there = [&error](const fs::path& file) { return fs::exists(file, error); };
  const auto made = madeOnce(folder);
  return made && lists(*made, name) && std::ranges::all_of(files, is_there);
}

/// What is missing is made by one process at a time: of two that begin a site together, the one
/// would sign with a key that the other has replaced. Nothing is locked where nothing is missing.
/// Errors: those of the disk
Result<io::Fd> lockWhatIsMissing(const fs::path& folder, std::string_view name,
                                 std::initializer_list<fs::path> files) {
  if (areThere(folder, name, files)) return io::Fd();
  TRY_OK(io::makeDirs(keysOf(folder), kFolderMode));
  io::Fd keys(::open(keysOf(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  bool is_locked = false;
  while (keys.valid() && !is_locked) {
    is_locked = ::flock(keys.get(), LOCK_EX) == 0;
    if (!is_locked && errno != EINTR) break;
  }
  if (is_locked) return std::move(keys);
  return fail(ErrorCode::Unavailable,
              fmt::format("cannot lock {}: {}", keysOf(folder).string(),
                          std::error_code(errno, std::generic_category()).message()));
}

}  // namespace

Result<io::SigningKey> loadSigningKey(const fs::path& folder, KeyFile key) {
  TRY(lock, lockWhatIsMissing(folder, key.name, {keyFileOf(folder, key)}));
  (void)lock;
  TRY_OK(requireNotLost(folder, key.name, keyFileOf(folder, key)));
  TRY_OK(requirePrivate(keyFileOf(folder, key)));
  TRY(loaded, io::SigningKey::loadOrCreate(keyFileOf(folder, key)));
  TRY_OK(noteMade(folder, key.name));
  TRY(previous, previousPem(folder, key, loaded.id()));
  loaded.public_pem += previous;
  return std::move(loaded);
}

Result<io::CertificateAuthority> loadAuthority(const fs::path& folder) {
  TRY(lock, lockWhatIsMissing(folder, kCa, {folder / "ca" / "ca.key", folder / "ca" / "ca.crt"}));
  (void)lock;
  TRY_OK(requireNotLost(folder, kCa, folder / "ca" / "ca.key"));
  TRY_OK(requireNotLost(folder, kCa, folder / "ca" / "ca.crt"));
  TRY_OK(requirePrivate(folder / "ca" / "ca.key"));
  TRY(ca, io::CertificateAuthority::loadOrCreate(folder / "ca", kCaName));
  TRY_OK(noteMade(folder, kCa));
  return std::move(ca);
}

Result<void> requireChangeable(const fs::path& folder, KeyFile key, KeyChange change) {
  if (change == KeyChange::ReplaceLost) {
    const auto file = keyFileOf(folder, key);
    std::error_code error;
    if (!fs::exists(fs::symlink_status(file, error))) return {};
    return fail(ErrorCode::Conflict,
                fmt::format("{} is there, so it is not lost; to change it: muster key rotate {}",
                            file.string(), key.name));
  }
  TRY(present, loadSigningKey(folder, key));
  const bool is_under_way = io::publicKeyIds(present.public_pem).size() > 1;
  if (change == KeyChange::Rotate && is_under_way)
    return fail(ErrorCode::Conflict, fmt::format("a rotation of the key for {0} is under way; end "
                                                 "it first: muster key rotate {0} --finish",
                                                 key.name));
  if (change == KeyChange::Finish && !is_under_way)
    return fail(
        ErrorCode::NotFound,
        fmt::format("no rotation of the key for {0} is under way; begin one: muster key rotate {0}",
                    key.name));
  return {};
}

Result<io::SigningKey> rotateSigningKey(const fs::path& folder, KeyFile key) {
  TRY(present, loadSigningKey(folder, key));
  TRY_OK(removeLeftovers(folder, key, present));
  TRY_OK(requireChangeable(folder, key, KeyChange::Rotate));
  TRY(next, io::SigningKey::generate());
  // The key before is known as such before it stops to sign: a crash in between leaves it present,
  // and not listed twice.
  TRY_OK(io::writeFileAtomic(previousOf(folder, key), present.public_pem, 0644));
  TRY_OK(io::writeFileAtomic(keyFileOf(folder, key), next.private_pem.reveal(), kFileMode));
  return loadSigningKey(folder, key);
}

Result<io::SigningKey> replaceLostSigningKey(const fs::path& folder, KeyFile key) {
  TRY_OK(requireChangeable(folder, key, KeyChange::ReplaceLost));
  const auto file = keyFileOf(folder, key);
  TRY(next, io::SigningKey::generate());
  TRY_OK(io::makeDirs(keysOf(folder), kFolderMode));
  TRY_OK(io::writeFileAtomic(file, next.private_pem.reveal(), kFileMode));
  return loadSigningKey(folder, key);
}

Result<fs::path> finishSigningRotation(const fs::path& folder, KeyFile key) {
  TRY(present, loadSigningKey(folder, key));
  TRY_OK(removeLeftovers(folder, key, present));
  TRY_OK(requireChangeable(folder, key, KeyChange::Finish));
  const auto pems = io::publicPems(present.public_pem);
  if (pems.size() < 2) return fail(ErrorCode::Conflict, "the key was changed meanwhile");
  auto retired = retiredOf(folder, key, io::publicKeyIds(pems[1]).front());
  TRY_OK(io::makeDirs(retired.parent_path(), kFolderMode));
  TRY_OK(io::writeFileAtomic(retired, pems[1], 0644));
  std::error_code failed;
  fs::remove(previousOf(folder, key), failed);
  if (failed)
    return fail(
        ErrorCode::Unavailable,
        fmt::format("cannot remove {}: {}", previousOf(folder, key).string(), failed.message()));
  return retired;
}

Result<std::optional<fs::path>> signerOf(const fs::path& state) {
  auto text = io::readFile(state / kSignerFile, kMaxMadeBytes);
  if (!text && text.error().code() == ErrorCode::NotFound) return std::optional<fs::path>();
  if (!text) return fail(std::move(text).error());
  if (!text->starts_with('/') || !text->ends_with('\n') || text->find('\n') != text->size() - 1)
    return fail(ErrorCode::Corrupt, fmt::format("{} does not name the signer's socket; as root: "
                                                "/usr/lib/muster/own-state writes it again",
                                                (state / kSignerFile).string()));
  text->pop_back();
  return std::optional<fs::path>(*text);
}

Result<PublicHalves> readPublicHalves(const fs::path& state) {
  TRY(certificates, io::readFile(publicFileOf(state, kCertificatesKey), kMaxKeyBytes));
  TRY(ca, io::readFile(state / "ca" / "ca.crt", kMaxKeyBytes));
  return PublicHalves{std::move(certificates), std::move(ca)};
}

Result<void> writePublicHalves(const fs::path& state, const PublicHalves& halves) {
  const auto known = readPublicHalves(state);
  if (known && known->certificates == halves.certificates && known->ca == halves.ca) return {};
  TRY_OK(io::makeDirs(keysOf(state), kFolderMode));
  TRY_OK(io::makeDirs(state / "ca", kFolderMode));
  TRY_OK(
      io::writeFileAtomic(publicFileOf(state, kCertificatesKey), halves.certificates, kFileMode));
  return io::writeFileAtomic(state / "ca" / "ca.crt", halves.ca, kFileMode);
}

Result<void> noteSigner(const fs::path& state, const fs::path& socket) {
  const auto known = signerOf(state);
  if (known && *known && **known == socket) return {};
  return io::writeFileAtomic(state / kSignerFile, socket.string() + "\n", kFileMode);
}

}  // namespace muster::signer
