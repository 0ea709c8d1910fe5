// SPDX-License-Identifier: Apache-2.0
// The keys of a site: one a purpose, so that whoever gets one of them can sign only what that one
// is for, and each can be changed alone.
//
// Files in STATE/keys, private halves with mode 0600:
//   images.pem  signing.pem (certificates; the only key there was once, hence its name)
//   firmware.pem  audit.pem X.previous.pub: the public half of the key before, while a rotation is
//   under way: both verify, only the new one signs retired/PURPOSE-ID.pub: public halves that count
//   no more; to read old exported heads of the log
// The CA lies in STATE/ca (io::CertificateAuthority). With the packages the CA's key and the one
// for certificates are the signer's, and only public halves are here (signer/key_files.h,
// adr/0367). docs/keys.md, docs/adr/0192.
#pragma once

#include "base/io/crypto.h"
#include "signer/authority.h"
#include "signer/certificate_key.h"

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::app {

enum class KeyPurpose { Images, Certificates, Firmware, Audit };

struct KeyPurposeRow {
  KeyPurpose purpose;
  std::string_view name;    ///< as typed and shown
  std::string_view file;    ///< in STATE/keys
  std::string_view agreed;  ///< the store's value that all hosts of a site must agree on
  std::string_view signs;   ///< for people
};
inline constexpr std::array<KeyPurposeRow, 4> kKeyPurposes{{
    {KeyPurpose::Images, "images", "images.pem", "site/images-key",
     "indexes and bundles of images; nodes verify them before they write"},
    {KeyPurpose::Certificates, "certificates", "signing.pem", "site/signing-key",
     "nodes' certificates and the list of revocations"},
    {KeyPurpose::Firmware, "firmware", "firmware.pem", "site/firmware-key",
     "firmware baselines (muster firmware sign)"},
    {KeyPurpose::Audit, "audit", "audit.pem", "site/audit-key", "the head of the audit log"},
}};
const KeyPurposeRow& rowOf(KeyPurpose purpose);
/// Errors: InvalidInput (which there are)
Result<KeyPurpose> parseKeyPurpose(std::string_view name);

/// All keys of a state folder. Each public_pem holds the key that signs and, while it is rotated,
/// the one before.
struct Keys {
  signer::Authority ca;
  io::SigningKey images;
  signer::CertificateKey certificates;
  io::SigningKey firmware, audit;
  const std::string& publicPem(KeyPurpose purpose) const;
  /// Makes what was never there. Errors: Conflict (two purposes have the same key; one was here and
  /// is missing), Corrupt, those of the disk
  static Result<Keys> loadOrCreate(const std::filesystem::path& state);
};

/// One key alone; made when there was none yet. Of a key that the signer holds the public half.
/// Errors: Conflict (it was here, and is missing)
Result<io::SigningKey> loadKey(const std::filesystem::path& state, KeyPurpose purpose);
/// The key for certificates, with whoever signs by it. Errors: those of loadKey
Result<signer::CertificateKey> certificateKey(const std::filesystem::path& state);
/// The public half (and the one before) without making anything. Errors: NotFound, Corrupt
Result<std::string> publicKeyOf(const std::filesystem::path& state, KeyPurpose purpose);

/// Makes a new key, which signs from now on; the one before still verifies. The old private half is
/// gone then. Effect: killed anywhere, the old or the new key is whole, and what the old one signed
/// still verifies; the same command goes on. Errors: Conflict (a rotation is under way), those of
/// the disk and of the signer that holds the key
Result<io::SigningKey> rotateKey(const std::filesystem::path& state, KeyPurpose purpose);

/// A new key in the place of one whose file is gone. Errors: Conflict (the file is there), those of
/// the disk
Result<io::SigningKey> replaceLostKey(const std::filesystem::path& state, KeyPurpose purpose);

/// Ends the rotation: what the key before has signed counts no more. Answers where its public half
/// is kept. Errors: NotFound (none is under way), those of the disk
Result<std::filesystem::path> finishRotation(const std::filesystem::path& state,
                                             KeyPurpose purpose);

}  // namespace muster::app
