// SPDX-License-Identifier: Apache-2.0
#include "app/site/site_keys.h"

#include "app/site/state_folder.h"
#include "base/io/files.h"
#include "base/io/trusted_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCaName = "muster CA";
constexpr std::size_t kMaxKeyBytes = 1u << 16;

fs::path folderOf(const fs::path& state) { return state / "keys"; }
fs::path fileOf(const fs::path& state, KeyPurpose purpose) {
  return folderOf(state) / rowOf(purpose).file;
}
fs::path previousOf(const fs::path& state, KeyPurpose purpose) {
  return folderOf(state) / fmt::format("{}.previous.pub", fileOf(state, purpose).stem().string());
}

fs::path retiredOf(const fs::path& state, KeyPurpose purpose, const std::string& id) {
  return folderOf(state) / "retired" / fmt::format("{}-{}.pub", rowOf(purpose).name, id);
}

/// The key before, unless it is the one that still signs: a rotation was cut off before it had
/// begun.
Result<std::string> previousPem(const fs::path& state, KeyPurpose purpose,
                                const std::string& present_id) {
  auto text = io::readFile(previousOf(state, purpose), kMaxKeyBytes);
  if (!text && text.error().code() == ErrorCode::NotFound) return std::string();
  if (!text) return fail(std::move(text).error());
  const auto pem = io::publicPems(*text).front();
  return io::publicKeyIds(pem).front() == present_id ? std::string() : pem;
}

/// What was made here once, a line each. Beside the keys' folder, so that it outlives that.
constexpr const char* kMadeFile = "keys.made";
constexpr std::size_t kMaxMadeBytes = 4096;

Result<std::string> madeOnce(const fs::path& state) {
  auto text = io::readFile(state / kMadeFile, kMaxMadeBytes);
  if (!text && text.error().code() == ErrorCode::NotFound) return std::string();
  return text;
}

bool lists(const std::string& made, std::string_view name) {
  return ("\n" + made).find(fmt::format("\n{}\n", name)) != std::string::npos;
}

/// A new key in the place of a lost one would say nothing, and void what the old one has signed.
/// `name`: as typed, or "ca".
Result<void> requireNotLost(const fs::path& state, std::string_view name, const fs::path& file) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error))) return {};
  TRY(made, madeOnce(state));
  if (!lists(made, name)) return {};
  const auto anew = name == "ca"
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

Result<void> noteMade(const fs::path& state, std::string_view name) {
  TRY(made, madeOnce(state));
  if (lists(made, name)) return {};
  return io::writeFileAtomic(state / kMadeFile, made + std::string(name) + "\n", kStateFileMode);
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
/// that is or was in use, as a person's copy does, stays. Only while the state folder is locked.
Result<void> removeLeftovers(const fs::path& state, KeyPurpose purpose,
                             const io::SigningKey& present) {
  const auto file = fileOf(state, purpose).filename().string();
  const auto known = io::publicKeyIds(present.public_pem);
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folderOf(state), error)) {
    if (!isTemporaryOf(entry.path().filename().string(), file)) continue;
    if (!fs::is_regular_file(entry.symlink_status(error))) continue;
    const auto key = io::SigningKey::loadOrCreate(entry.path());
    const bool is_in_use = key && (std::ranges::find(known, key->id()) != known.end() ||
                                   fs::exists(retiredOf(state, purpose, key->id()), error));
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

const KeyPurposeRow& rowOf(KeyPurpose purpose) {
  return *std::find_if(kKeyPurposes.begin(), kKeyPurposes.end(),
                       [purpose](const auto& row) { return row.purpose == purpose; });
}

Result<KeyPurpose> parseKeyPurpose(std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& row : kKeyPurposes) {
    if (row.name == name) return KeyPurpose{row.purpose};
    known.push_back(row.name);
  }
  return fail(
      ErrorCode::InvalidInput,
      fmt::format(
          "there is no key for \"{}\"; there are {}{}", name, fmt::join(known, ", "),
          name == "ca"
              ? ". The CA cannot be rotated yet: nodes know it by its fingerprint (docs/keys.md)"
              : ""));
}

const io::SigningKey& Keys::of(KeyPurpose purpose) const {
  switch (purpose) {
    case KeyPurpose::Images:
      return images;
    case KeyPurpose::Certificates:
      return certificates;
    case KeyPurpose::Firmware:
      return firmware;
    case KeyPurpose::Audit:
      return audit;
  }
  return certificates;
}

Result<io::SigningKey> loadKey(const fs::path& state, KeyPurpose purpose) {
  TRY_OK(prepareStateFolder(state));
  TRY_OK(io::makeDirs(folderOf(state), kStateFolderMode));
  TRY_OK(requireNotLost(state, rowOf(purpose).name, fileOf(state, purpose)));
  TRY(key, io::SigningKey::loadOrCreate(fileOf(state, purpose)));
  TRY_OK(noteMade(state, rowOf(purpose).name));
  TRY(previous, previousPem(state, purpose, key.id()));
  key.public_pem += previous;
  return std::move(key);
}

Result<std::string> publicKeyOf(const fs::path& state, KeyPurpose purpose) {
  const auto file = fileOf(state, purpose);
  TRY_OK(requireNotLost(state, rowOf(purpose).name, file));
  if (std::error_code ignored; !fs::exists(file, ignored))
    return fail(ErrorCode::NotFound,
                fmt::format("{} is not here: this state folder has no key for {} yet",
                            file.string(), rowOf(purpose).name));
  TRY(key, loadKey(state, purpose));
  return std::move(key.public_pem);
}

Result<Keys> Keys::loadOrCreate(const fs::path& state) {
  TRY_OK(prepareStateFolder(state));
  TRY_OK(requireNotLost(state, "ca", state / "ca" / "ca.key"));
  TRY(ca, io::CertificateAuthority::loadOrCreate(state / "ca", kCaName));
  TRY_OK(noteMade(state, "ca"));
  TRY(images, loadKey(state, KeyPurpose::Images));
  TRY(certificates, loadKey(state, KeyPurpose::Certificates));
  TRY(firmware, loadKey(state, KeyPurpose::Firmware));
  TRY(audit, loadKey(state, KeyPurpose::Audit));
  Keys keys{std::move(ca), std::move(images), std::move(certificates), std::move(firmware),
            std::move(audit)};
  std::map<std::string, std::string_view> seen;
  for (const auto& row : kKeyPurposes)
    for (const auto& id : io::publicKeyIds(keys.of(row.purpose).public_pem))
      if (const auto [other, is_new] = seen.emplace(id, row.name); !is_new)
        return fail(
            ErrorCode::Conflict,
            fmt::format("the keys for {} and {} in {} are the same: what one signs would count for "
                        "the other. Restore them from a backup, or move {} away: a new one is made",
                        other->second, row.name, folderOf(state).string(),
                        fileOf(state, row.purpose).string()));
  return std::move(keys);
}

Result<io::SigningKey> rotateKey(const fs::path& state, KeyPurpose purpose) {
  TRY(present, loadKey(state, purpose));
  TRY_OK(removeLeftovers(state, purpose, present));
  if (io::publicKeyIds(present.public_pem).size() > 1)
    return fail(ErrorCode::Conflict, fmt::format("a rotation of the key for {0} is under way; end "
                                                 "it first: muster key rotate {0} --finish",
                                                 rowOf(purpose).name));
  TRY(next, io::SigningKey::generate());
  // The key before is known as such before it stops to sign: a crash in between leaves it present,
  // and not listed twice.
  TRY_OK(io::writeFileAtomic(previousOf(state, purpose), present.public_pem, 0644));
  TRY_OK(io::writeFileAtomic(fileOf(state, purpose), next.private_pem.reveal(), 0600));
  return loadKey(state, purpose);
}

Result<io::SigningKey> replaceLostKey(const fs::path& state, KeyPurpose purpose) {
  const auto file = fileOf(state, purpose);
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error)))
    return fail(ErrorCode::Conflict,
                fmt::format("{} is there, so it is not lost; to change it: muster key rotate {}",
                            file.string(), rowOf(purpose).name));
  TRY(next, io::SigningKey::generate());
  TRY_OK(io::makeDirs(folderOf(state), kStateFolderMode));
  TRY_OK(io::writeFileAtomic(file, next.private_pem.reveal(), 0600));
  return loadKey(state, purpose);
}

Result<fs::path> finishRotation(const fs::path& state, KeyPurpose purpose) {
  TRY(present, loadKey(state, purpose));
  TRY_OK(removeLeftovers(state, purpose, present));
  const auto pems = io::publicPems(present.public_pem);
  if (pems.size() < 2)
    return fail(
        ErrorCode::NotFound,
        fmt::format("no rotation of the key for {0} is under way; begin one: muster key rotate {0}",
                    rowOf(purpose).name));
  auto retired = retiredOf(state, purpose, io::publicKeyIds(pems[1]).front());
  TRY_OK(io::makeDirs(retired.parent_path(), 0700));
  TRY_OK(io::writeFileAtomic(retired, pems[1], 0644));
  std::error_code failed;
  fs::remove(previousOf(state, purpose), failed);
  if (failed)
    return fail(
        ErrorCode::Unavailable,
        fmt::format("cannot remove {}: {}", previousOf(state, purpose).string(), failed.message()));
  return retired;
}

}  // namespace muster::app
