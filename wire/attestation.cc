// SPDX-License-Identifier: Apache-2.0
#include "wire/attestation.h"
#include "base/io/crypto.h"
#include "base/io/tpm2.h"
#include "wire/fields.h"
#include "wire/messages.h"

#include <charconv>

namespace muster::wire {
namespace {

constexpr std::size_t kMaxAttestBytes = 256u << 10;
constexpr std::size_t kMaxCsrBytes = 64u << 10;
constexpr std::size_t kMaxBlobText = 16u
                                     << 10;  ///< base64 of a TPM's structures, and of a certificate

constexpr Text kName{kMaxNameBytes};
constexpr Bytes kBlob{kMaxBlobText};

/// Numbers of PCRs.
struct Pcrs {
  nlohmann::json print(const std::vector<int>& pcrs) const { return pcrs; }
  void read(JsonReader& reader, const char* key, bool optional, std::vector<int>& pcrs) const {
    for (const auto& pcr : reader.array(key, io::kTpmPcrs, optional)) {
      if (!pcr.is_number_unsigned() || pcr.get<std::uint64_t>() >= io::kTpmPcrs)
        reader.wrong(key, "must be numbers of PCRs");
      else
        pcrs.push_back(pcr.get<int>());
    }
  }
};

/// PCRs with their values, which are base64.
struct PcrValues {
  nlohmann::json print(const std::map<int, std::string>& pcrs) const {
    auto out = nlohmann::json::object();
    for (const auto& [pcr, value] : pcrs) out[std::to_string(pcr)] = io::toBase64(value);
    return out;
  }
  void read(JsonReader& reader, const char* key, bool optional,
            std::map<int, std::string>& pcrs) const {
    for (const auto& [pcr, value] : readTextMap(reader, key, io::kTpmPcrs, optional)) {
      int number = -1;
      const auto [end, wrong] = std::from_chars(pcr.data(), pcr.data() + pcr.size(), number);
      const auto bytes = io::fromBase64(value);
      if (wrong != std::errc() || end != pcr.data() + pcr.size() || number < 0 ||
          number >= io::kTpmPcrs || !bytes)
        reader.wrong(key, "must be PCRs with their values");
      else
        pcrs[number] = *bytes;
    }
  }
};

}  // namespace

template <>
inline constexpr auto kFields<AttestRequest> = std::tuple(
    field("enrolment", &AttestRequest::enrollment, kName), field("mac", &AttestRequest::mac, kName),
    field("ek_public", &AttestRequest::ek_public, kBlob),
    field("ek_certificate", &AttestRequest::ek_certificate, kBlob),
    field("ak_public", &AttestRequest::ak_public, kBlob));

template <>
inline constexpr auto kFields<AttestChallenge> = std::tuple(
    field("id_object", &AttestChallenge::id_object, kBlob),
    field("encrypted_secret", &AttestChallenge::encrypted_secret, kBlob),
    field("nonce", &AttestChallenge::nonce, kBlob), field("pcrs", &AttestChallenge::pcrs, Pcrs{}));

template <>
inline constexpr auto kFields<AttestedRequest> =
    std::tuple(field("enrolment", &AttestedRequest::enrollment, kName),
               field("mac", &AttestedRequest::mac, kName),
               field("csr_pem", &AttestedRequest::csr_pem, Text{kMaxCsrBytes}),
               field("trouble", &AttestedRequest::trouble, Text{kMaxTextBytes}).optional(),
               field("secret", &AttestedRequest::secret, kBlob),
               field("quote", &AttestedRequest::quote, kBlob),
               field("signature", &AttestedRequest::signature, kBlob),
               field("pcrs", &AttestedRequest::pcrs, PcrValues{}));

std::string qualifyingData(std::string_view nonce, std::string_view csr_pem) {
  return io::sha256("muster-quote/1\n" + std::string(nonce) + io::sha256(csr_pem));
}

std::string toJson(const AttestRequest& request) { return printMessage(request); }

Result<AttestRequest> parseAttestRequest(std::string_view text) {
  return parseMessage<AttestRequest>(text, kMaxAttestBytes, "request for a challenge", "attest");
}

std::string toJson(const AttestChallenge& challenge) { return printMessage(challenge); }

Result<AttestChallenge> parseAttestChallenge(std::string_view text) {
  return parseMessage<AttestChallenge>(text, kMaxAttestBytes, "challenge", "challenge");
}

std::string toJson(const AttestedRequest& request) { return printMessage(request); }

Result<AttestedRequest> parseAttestedRequest(std::string_view text) {
  return parseMessage<AttestedRequest>(text, kMaxAttestBytes, "attested request", "attested");
}

}  // namespace muster::wire
