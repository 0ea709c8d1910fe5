// SPDX-License-Identifier: Apache-2.0
// Proof by TPM 2.0, before a machine gets its certificate; for nodes whose profile has a `tpm`
// policy.
//
//   POST /agent/v1/enrol    → 403 {"error", "attest": true}: this node must prove itself
//   POST /agent/v1/attest   id, EK, AK → challenge: a secret that only the TPM with this EK, and
//   this AK in it, can open; a nonce; PCRs POST /agent/v1/attested what enroll takes, the secret,
//   and a quote of the PCRs, signed by the AK over SHA-256(nonce, request) → certificate
//
// So the certificate's key, the AK, the EK and the boot are tied to each other: a quote of another
// machine, of another request or of an earlier day is worth nothing. Bytes travel as base64. A
// challenge is good once, for kChallengeLife.
#pragma once

#include "base/result.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace muster::wire {

inline constexpr std::chrono::seconds kChallengeLife{120};

struct AttestRequest {
  std::string enrollment, mac, ek_public, ek_certificate, ak_public;
};
struct AttestChallenge {
  std::string id_object, encrypted_secret, nonce;
  std::vector<int> pcrs;
};
struct AttestedRequest {
  std::string enrollment, mac, csr_pem;
  std::string
      trouble;  ///< the machine cannot prove itself: why (no TPM, …); the rest is empty then
  std::string secret, quote, signature;
  std::map<int, std::string> pcrs;  ///< SHA-256 bank, bytes
};
std::string toJson(const AttestRequest&);
Result<AttestRequest> parseAttestRequest(std::string_view);
std::string toJson(const AttestChallenge&);
Result<AttestChallenge> parseAttestChallenge(std::string_view);
std::string toJson(const AttestedRequest&);
Result<AttestedRequest> parseAttestedRequest(std::string_view);

/// What the AK signs beside the PCRs.
std::string qualifyingData(std::string_view nonce, std::string_view csr_pem);

}  // namespace muster::wire
