// SPDX-License-Identifier: Apache-2.0
// What a controller must understand of TPM 2.0: public areas, quotes, credentials. Parsing is
// strict: a length that does not fit, a byte too many, an algorithm that is not named here is
// Corrupt or InvalidInput, never a guess. All input is of a machine that is not trusted yet.
// Source: TCG TPM 2.0 Library, Part 1 (KDFa, credential protection) and Part 2 (structures); TCG EK
// Credential Profile
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::io {

inline constexpr std::size_t kTpmMaxBytes = 4096;  ///< of any structure here
inline constexpr int kTpmPcrs = 24;

/// A key's public area (TPM2B_PUBLIC), understood.
struct TpmPublic {
  std::string area;              ///< TPMT_PUBLIC, as it was
  std::uint32_t attributes = 0;  ///< TPMA_OBJECT
  bool rsa = false;              ///< else ECC
  std::string modulus;           ///< RSA, big-endian
  std::uint32_t exponent = 65537;
  std::string x, y;        ///< ECC on P-256
  bool aes128cfb = false;  ///< what it wraps for its children

  std::string name() const;  ///< nameAlg and SHA-256 of the area: what a credential is bound to
  std::string id() const;    ///< SHA-256 of the area, hex
  /// Made inside a TPM, cannot leave it, signs only what the TPM itself has made. Errors: Denied
  /// naming what is missing
  Result<void> mayAttest() const;
  /// The same of a storage key that decrypts credentials.
  Result<void> mayBeEndorsement() const;
};
/// Errors: Corrupt, InvalidInput (an algorithm that is not supported)
Result<TpmPublic> parseTpmPublic(std::string_view bytes);

/// What a quote says (TPMS_ATTEST of type quote).
struct TpmQuote {
  std::string extra_data;  ///< the verifier's own words
  std::vector<int> pcrs;   ///< of the SHA-256 bank, in order
  std::string pcr_digest;  ///< SHA-256 over their values
  std::uint32_t resets = 0;
};
Result<TpmQuote> parseTpmQuote(std::string_view bytes);
/// Whether the key has signed these bytes (TPMT_SIGNATURE: RSASSA or ECDSA, SHA-256). Errors:
/// Corrupt
Result<void> verifyTpmSignature(const TpmPublic& key, std::string_view bytes,
                                std::string_view signature);

/// Only the TPM that holds the EK's private half, and a key of this name beside it, can give the
/// secret back.
struct TpmCredential {
  std::string id_object;         ///< TPM2B_ID_OBJECT
  std::string encrypted_secret;  ///< TPM2B_ENCRYPTED_SECRET
};
Result<TpmCredential> makeTpmCredential(const TpmPublic& endorsement, std::string_view name,
                                        std::string_view secret);

/// Whether the certificate (DER) is of this EK and leads to one of the roots (PEM). Errors: Denied,
/// Corrupt
Result<void> checkEndorsement(const TpmPublic& endorsement, std::string_view certificate_der,
                              std::string_view roots_pem);

}  // namespace muster::io
