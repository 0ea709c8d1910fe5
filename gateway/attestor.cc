// SPDX-License-Identifier: Apache-2.0
#include "gateway/attestor.h"

#include "base/io/crypto.h"
#include "base/log.h"
#include "inventory/model/access.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::gateway {
namespace {

constexpr std::size_t kSecretBytes = 32, kPcrBytes = 32;

std::string keyOf(const NodeName& node) { return "tpm.ek." + node.str(); }

std::unexpected<Error> denied(std::string why) { return fail(ErrorCode::Denied, std::move(why)); }

}  // namespace

const inventory::TpmSpec* Attestor::policyOf(const inventory::Node& node) const {
  const auto profile = cluster_.profiles.find(node.profile);
  return profile != cluster_.profiles.end() && profile->second.tpm ? &*profile->second.tpm
                                                                   : nullptr;
}

Result<bool> Attestor::knows(const NodeName& node) const {
  TRY(known, store_.getValue(keyOf(node)));
  return known && !known->empty();
}

Result<wire::AttestChallenge> Attestor::challenge(const inventory::Node& node,
                                                  const wire::AttestRequest& request) {
  const auto* policy = policyOf(node);
  if (!policy)
    return fail(ErrorCode::InvalidInput, "nothing is asked of the TPM of " + node.name.str());
  TRY(endorsement, io::parseTpmPublic(request.ek_public));
  TRY(key, io::parseTpmPublic(request.ak_public));
  TRY_OK(endorsement.mayBeEndorsement());
  TRY_OK(key.mayAttest());
  TRY(known, store_.getValue(keyOf(node.name)));
  if (known && !known->empty() && *known != endorsement.id())
    return denied(
        fmt::format("its TPM is another one than before (EK {}…, was {}…); after a main board was "
                    "replaced: muster bmc forget-tpm {}",
                    endorsement.id().substr(0, 12), known->substr(0, 12), node.name.str()));
  if (!policy->ek_roots_pem.empty())
    TRY_OK(io::checkEndorsement(endorsement, request.ek_certificate, policy->ek_roots_pem));
  Pending pending{key, endorsement.id(), io::randomBytes(kSecretBytes),
                  io::randomBytes(kSecretBytes), clock_.steady() + wire::kChallengeLife};
  TRY(credential, io::makeTpmCredential(endorsement, key.name(), pending.secret));
  wire::AttestChallenge out{credential.id_object, credential.encrypted_secret, pending.nonce, {}};
  for (const auto& [pcr, values] : policy->pcrs) out.pcrs.push_back(std::stoi(pcr));
  std::sort(out.pcrs.begin(), out.pcrs.end());
  pending_[node.name] = std::move(pending);
  return out;
}

Result<void> Attestor::check(const inventory::Node& node, const wire::AttestedRequest& request) {
  const auto* policy = policyOf(node);
  if (!policy) return {};
  if (!request.trouble.empty())
    return denied("its agent cannot prove it by the TPM: " + request.trouble);
  auto found = pending_.extract(node.name);
  if (found.empty() || clock_.steady() > found.mapped().until)
    return denied("it answered no challenge of the TPM, or too late");
  const auto& pending = found.mapped();
  if (!io::equalConstantTime(pending.secret, request.secret))
    return denied(
        "its TPM did not open the challenge: the attestation key is not in the TPM that it named");
  TRY_OK(checkQuote(*policy, pending, request));
  TRY(known, store_.getValue(keyOf(node.name)));
  if (known && *known == pending.endorsement_id) return {};
  if (known && !known->empty()) return denied("its TPM is another one than before");
  TRY(ours, store_.exchangeValue(keyOf(node.name), known, pending.endorsement_id));
  if (!ours) return denied("another TPM proved itself as this node at the same moment");
  logInfo("agent", "{}: the TPM with EK {} is this node's from now on", node.name.str(),
          pending.endorsement_id.substr(0, 12));
  return {};
}

Result<void> Attestor::checkQuote(const inventory::TpmSpec& policy, const Pending& pending,
                                  const wire::AttestedRequest& request) const {
  TRY_OK(io::verifyTpmSignature(pending.attestation_key, request.quote, request.signature));
  TRY(quote, io::parseTpmQuote(request.quote));
  if (!io::equalConstantTime(quote.extra_data,
                             wire::qualifyingData(pending.nonce, request.csr_pem)))
    return denied("its TPM's quote is of another time, or for another key");
  std::string values;
  std::vector<int> pcrs;
  for (const auto& [pcr, value] : request.pcrs) {
    if (value.size() != kPcrBytes) return denied("a PCR has 32 bytes");
    pcrs.push_back(pcr);
    values += value;
  }
  if (pcrs != quote.pcrs || pcrs.size() != policy.pcrs.size())
    return denied("its TPM's quote is not of the PCRs that were asked for");
  if (io::sha256(values) != quote.pcr_digest)
    return denied("the PCRs that it sent are not those that its TPM signed");
  for (const auto& [name, right] : policy.pcrs) {
    const auto output = request.pcrs.find(std::stoi(name));
    if (output == request.pcrs.end())
      return denied(fmt::format("its TPM's quote leaves out PCR {}", name));
    const auto value = io::toHex(output->second);
    if (std::find(right.begin(), right.end(), value) == right.end())
      return denied(fmt::format(
          "it booted something else than declared: PCR {} is {}, which its profile does not list",
          name, value));
  }
  return {};
}

Result<void> forgetTpm(lifecycle::Store& store, const NodeName& node) {
  return store.putValue(keyOf(node), "");
}

}  // namespace muster::gateway
