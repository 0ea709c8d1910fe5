// SPDX-License-Identifier: Apache-2.0
#include "app/site/site_keys.h"

#include "app/site/state_folder.h"
#include "base/io/files.h"
#include "base/io/trusted_keys.h"
#include "signer/key_files.h"
#include "signer/signer_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

/// The signer holds one of these keys, where it holds any.
signer::KeyFile fileFor(KeyPurpose purpose) {
  const auto& row = rowOf(purpose);
  return {row.name, row.file};
}

/// Where the signer listens that holds this key of the state folder.
Result<std::optional<fs::path>> holderOfKey(const fs::path& state, KeyPurpose purpose) {
  if (purpose != KeyPurpose::Certificates) return std::optional<fs::path>();
  return signer::signerOf(state);
}

/// Of a new site the signer makes the keys now.
Result<signer::PublicHalves> halvesOf(const fs::path& state, const fs::path& socket) {
  auto halves = signer::readPublicHalves(state);
  if (halves || halves.error().code() != ErrorCode::NotFound) return halves;
  TRY(made, signer::signerAt(socket).publicHalves());
  TRY_OK(signer::writePublicHalves(state, made));
  return std::move(made);
}

io::SigningKey publicOnly(std::string pem) { return {Secret(), std::move(pem)}; }

/// What the signer answered is this folder's copy from now on.
Result<io::SigningKey> taken(const fs::path& state, Result<signer::PublicHalves> halves) {
  if (!halves) return fail(std::move(halves).error());
  TRY_OK(signer::writePublicHalves(state, *halves));
  return publicOnly(std::move(halves->certificates));
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

const std::string& Keys::publicPem(KeyPurpose purpose) const {
  switch (purpose) {
    case KeyPurpose::Images:
      return images.public_pem;
    case KeyPurpose::Certificates:
      return certificates.public_pem;
    case KeyPurpose::Firmware:
      return firmware.public_pem;
    case KeyPurpose::Audit:
      return audit.public_pem;
  }
  return certificates.public_pem;
}

Result<io::SigningKey> loadKey(const fs::path& state, KeyPurpose purpose) {
  TRY_OK(prepareStateFolder(state));
  TRY(held, holderOfKey(state, purpose));
  if (!held) return signer::loadSigningKey(state, fileFor(purpose));
  TRY(halves, halvesOf(state, *held));
  return publicOnly(std::move(halves.certificates));
}

Result<signer::CertificateKey> certificateKey(const fs::path& state) {
  TRY(key, loadKey(state, KeyPurpose::Certificates));
  TRY(held, signer::signerOf(state));
  if (!held) return signer::CertificateKey(key);
  return signer::CertificateKey(
      key.public_pem, std::make_shared<const signer::SignerClient>(signer::signerAt(*held)));
}

Result<std::string> publicKeyOf(const fs::path& state, KeyPurpose purpose) {
  TRY(held, holderOfKey(state, purpose));
  const auto file = held ? signer::publicFileOf(state, fileFor(purpose))
                         : signer::keyFileOf(state, fileFor(purpose));
  if (!held) TRY_OK(signer::requireNotLost(state, rowOf(purpose).name, file));
  if (std::error_code ignored; !fs::exists(file, ignored))
    return fail(ErrorCode::NotFound,
                fmt::format("{} is not here: this state folder has no key for {} yet",
                            file.string(), rowOf(purpose).name));
  TRY(key, loadKey(state, purpose));
  return std::move(key.public_pem);
}

namespace {

/// Identities of servers, for a start without the signer.
constexpr const char* kKeptIdentities = "run/identities";

Result<signer::Authority> authorityOf(const fs::path& state) {
  TRY(held, signer::signerOf(state));
  if (!held) {
    TRY(ca, signer::loadAuthority(state));
    return signer::Authority(ca);
  }
  TRY(halves, halvesOf(state, *held));
  return signer::Authority::signedBy(
      std::move(halves.ca), std::make_shared<const signer::SignerClient>(signer::signerAt(*held)),
      state / kKeptIdentities);
}

}  // namespace

Result<Keys> Keys::loadOrCreate(const fs::path& state) {
  TRY_OK(prepareStateFolder(state));
  TRY(ca, authorityOf(state));
  TRY(images, loadKey(state, KeyPurpose::Images));
  TRY(certificates, certificateKey(state));
  TRY(firmware, loadKey(state, KeyPurpose::Firmware));
  TRY(audit, loadKey(state, KeyPurpose::Audit));
  Keys keys{std::move(ca), std::move(images), std::move(certificates), std::move(firmware),
            std::move(audit)};
  std::map<std::string, std::string_view> seen;
  for (const auto& row : kKeyPurposes)
    for (const auto& id : io::publicKeyIds(keys.publicPem(row.purpose)))
      if (const auto [other, is_new] = seen.emplace(id, row.name); !is_new)
        return fail(
            ErrorCode::Conflict,
            fmt::format("the keys for {} and {} in {} are the same: what one signs would count for "
                        "the other. Restore them from a backup, or move {} away: a new one is made",
                        other->second, row.name, (state / "keys").string(),
                        signer::keyFileOf(state, fileFor(row.purpose)).string()));
  return std::move(keys);
}

Result<io::SigningKey> rotateKey(const fs::path& state, KeyPurpose purpose) {
  TRY(held, holderOfKey(state, purpose));
  if (!held) return signer::rotateSigningKey(state, fileFor(purpose));
  return taken(state, signer::signerAt(*held).rotate());
}

Result<io::SigningKey> replaceLostKey(const fs::path& state, KeyPurpose purpose) {
  TRY(held, holderOfKey(state, purpose));
  if (!held) return signer::replaceLostSigningKey(state, fileFor(purpose));
  return taken(state, signer::signerAt(*held).replaceLost());
}

Result<fs::path> finishRotation(const fs::path& state, KeyPurpose purpose) {
  TRY(held, holderOfKey(state, purpose));
  if (!held) return signer::finishSigningRotation(state, fileFor(purpose));
  // Kept here, where a person looks for it.
  TRY(before, publicKeyOf(state, purpose));
  TRY_OK(taken(state, signer::signerAt(*held).finish()));
  const auto pems = io::publicPems(before);
  const auto& old = pems.back();
  auto retired = state / "keys" / "retired" /
                 fmt::format("{}-{}.pub", rowOf(purpose).name, io::publicKeyIds(old).front());
  TRY_OK(io::makeDirs(retired.parent_path(), kStateFolderMode));
  TRY_OK(io::writeFileAtomic(retired, old, 0644));
  return retired;
}

}  // namespace muster::app
