// SPDX-License-Identifier: Apache-2.0
#include "wire/attestation.h"
#include "base/io/crypto.h"
#include "base/io/tpm2.h"
#include "base/json_output.h"
#include "wire/json_reader.h"
#include "wire/messages.h"

#include <charconv>

namespace muster::wire {
namespace {

constexpr std::size_t kMaxAttestBytes = 256u << 10;
constexpr std::size_t kMaxCsrBytes = 64u << 10;
constexpr std::size_t kMaxBlobText = 16u
                                     << 10;  ///< base64 of a TPM's structures, and of a certificate

std::string blob(JsonReader& reader, const char* key) {
  const auto text = reader.text(key, kMaxBlobText);
  if (text.empty()) return {};
  auto bytes = io::fromBase64(text);
  if (!bytes) reader.wrong(key, "is not base64");
  return bytes.value_or(std::string());
}

std::string dump(const nlohmann::json& json) { return jsonText(json); }

}  // namespace

std::string qualifyingData(std::string_view nonce, std::string_view csr_pem) {
  return io::sha256("muster-quote/1\n" + std::string(nonce) + io::sha256(csr_pem));
}

std::string toJson(const AttestRequest& request) {
  return dump({{"enrolment", request.enrolment},
               {"mac", request.mac},
               {"ek_public", io::toBase64(request.ek_public)},
               {"ek_certificate", io::toBase64(request.ek_certificate)},
               {"ak_public", io::toBase64(request.ak_public)}});
}

Result<AttestRequest> parseAttestRequest(std::string_view text) {
  TRY(object, parseObject(text, kMaxAttestBytes, "request for a challenge"));
  JsonReader reader(object, "attest");
  AttestRequest out;
  out.enrolment = reader.text("enrolment", kMaxNameBytes);
  out.mac = reader.text("mac", kMaxNameBytes);
  out.ek_public = blob(reader, "ek_public");
  out.ek_certificate = blob(reader, "ek_certificate");
  out.ak_public = blob(reader, "ak_public");
  TRY_OK(reader.finish());
  return out;
}

std::string toJson(const AttestChallenge& challenge) {
  return dump({{"id_object", io::toBase64(challenge.id_object)},
               {"encrypted_secret", io::toBase64(challenge.encrypted_secret)},
               {"nonce", io::toBase64(challenge.nonce)},
               {"pcrs", challenge.pcrs}});
}

Result<AttestChallenge> parseAttestChallenge(std::string_view text) {
  TRY(object, parseObject(text, kMaxAttestBytes, "challenge"));
  JsonReader reader(object, "challenge");
  AttestChallenge out;
  out.id_object = blob(reader, "id_object");
  out.encrypted_secret = blob(reader, "encrypted_secret");
  out.nonce = blob(reader, "nonce");
  for (const auto& pcr : reader.array("pcrs", io::kTpmPcrs)) {
    if (!pcr.is_number_unsigned() || pcr.get<std::uint64_t>() >= io::kTpmPcrs)
      reader.wrong("pcrs", "must be numbers of PCRs");
    else
      out.pcrs.push_back(pcr.get<int>());
  }
  TRY_OK(reader.finish());
  return out;
}

std::string toJson(const AttestedRequest& request) {
  nlohmann::json pcrs = nlohmann::json::object();
  for (const auto& [pcr, value] : request.pcrs) pcrs[std::to_string(pcr)] = io::toBase64(value);
  return dump({{"enrolment", request.enrolment},
               {"mac", request.mac},
               {"csr_pem", request.csr_pem},
               {"trouble", request.trouble},
               {"secret", io::toBase64(request.secret)},
               {"quote", io::toBase64(request.quote)},
               {"signature", io::toBase64(request.signature)},
               {"pcrs", std::move(pcrs)}});
}

Result<AttestedRequest> parseAttestedRequest(std::string_view text) {
  TRY(object, parseObject(text, kMaxAttestBytes, "attested request"));
  JsonReader reader(object, "attested");
  AttestedRequest out;
  out.enrolment = reader.text("enrolment", kMaxNameBytes);
  out.mac = reader.text("mac", kMaxNameBytes);
  out.csr_pem = reader.text("csr_pem", kMaxCsrBytes);
  out.trouble = reader.text("trouble", kMaxTextBytes, true);
  out.secret = blob(reader, "secret");
  out.quote = blob(reader, "quote");
  out.signature = blob(reader, "signature");
  for (const auto& [pcr, value] : readTextMap(reader, "pcrs", io::kTpmPcrs)) {
    int number = -1;
    const auto [end, wrong] = std::from_chars(pcr.data(), pcr.data() + pcr.size(), number);
    const auto bytes = io::fromBase64(value);
    if (wrong != std::errc() || end != pcr.data() + pcr.size() || number < 0 ||
        number >= io::kTpmPcrs || !bytes)
      reader.wrong("pcrs", "must be PCRs with their values");
    else
      out.pcrs[number] = *bytes;
  }
  TRY_OK(reader.finish());
  return out;
}

}  // namespace muster::wire
