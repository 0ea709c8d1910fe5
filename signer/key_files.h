// SPDX-License-Identifier: Apache-2.0
// Keys as files of a folder: one Ed25519 pair a purpose, and the CA. The state folder has them, and
// the signer's own folder has those that it alone holds, in the same layout:
//
//   keys/FILE.pem, 0600       private half
//   keys/FILE.previous.pub    the public half of the key before, while a rotation is under way
//   keys/retired/NAME-ID.pub  public halves that count no more
//   ca/ca.key, ca/ca.crt      io::CertificateAuthority
//   keys.made                 what was made here once, a line each
//
// Of a state folder whose keys the signer holds: keys.signer (the signer's socket), keys/FILE.pub
// (the public halves, the one that signs first) and ca/ca.crt.
#pragma once

#include "base/io/crypto.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace muster::signer {

struct KeyFile {
  std::string_view name;  ///< as typed and shown: "certificates"
  std::string_view file;  ///< in keys/: "signing.pem"
};
/// The one that a signer may hold.
inline constexpr KeyFile kCertificatesKey{"certificates", "signing.pem"};
inline constexpr std::string_view kCa = "ca";  ///< in keys.made

std::filesystem::path keyFileOf(const std::filesystem::path& folder, KeyFile key);
/// Its public half, where the signer holds the private one.
std::filesystem::path publicFileOf(const std::filesystem::path& state, KeyFile key);

/// Errors: Conflict (it was made here once, and its file is missing). `name`: of a key, or kCa
Result<void> requireNotLost(const std::filesystem::path& folder, std::string_view name,
                            const std::filesystem::path& file);

/// Made when there was none yet, by one process at a time. Its public_pem has the key before behind
/// it, while it is rotated. Errors: Conflict (it was here, and is missing), Denied (its private
/// half is a link, or others can read it), Corrupt, those of the disk
Result<io::SigningKey> loadSigningKey(const std::filesystem::path& folder, KeyFile key);
Result<io::CertificateAuthority> loadAuthority(const std::filesystem::path& folder);

enum class KeyChange { Rotate, Finish, ReplaceLost };
/// Whether it could begin now; removes and makes nothing anew. Errors: those of the three below
/// that come of how the keys are, and not of the disk
Result<void> requireChangeable(const std::filesystem::path& folder, KeyFile key, KeyChange change);
/// As app::rotateKey, app::replaceLostKey, app::finishRotation.
Result<io::SigningKey> rotateSigningKey(const std::filesystem::path& folder, KeyFile key);
Result<io::SigningKey> replaceLostSigningKey(const std::filesystem::path& folder, KeyFile key);
Result<std::filesystem::path> finishSigningRotation(const std::filesystem::path& folder,
                                                    KeyFile key);

/// Where the signer listens that holds this state folder's keys; nullopt: the folder has them
/// itself. Errors: Corrupt, those of the disk
Result<std::optional<std::filesystem::path>> signerOf(const std::filesystem::path& state);

/// Public halves, for a state folder whose keys the signer holds.
struct PublicHalves {
  std::string certificates, ca;  ///< PEM
};
/// Errors: NotFound, Corrupt, those of the disk
Result<PublicHalves> readPublicHalves(const std::filesystem::path& state);
Result<void> writePublicHalves(const std::filesystem::path& state, const PublicHalves& halves);
/// From now on signerOf answers `socket`.
Result<void> noteSigner(const std::filesystem::path& state, const std::filesystem::path& socket);

}  // namespace muster::signer
