// SPDX-License-Identifier: Apache-2.0
#include "agent/core/identity.h"

#include "agent/core/tpm.h"
#include "base/io/files.h"
#include "base/log.h"
#include "base/utf8.h"
#include "wire/attestation.h"
#include "wire/fields.h"

namespace muster::wire {
namespace {

constexpr std::size_t kMaxPemBytes = 64u << 10;
constexpr Text kPem{kMaxPemBytes};

struct SecretPem {
  nlohmann::json print(const Secret& secret) const { return secret.reveal(); }
  void read(JsonReader& reader, const char* key, bool, Secret& secret) const {
    secret = Secret(reader.text(key, kMaxPemBytes));
  }
};

}  // namespace

/// identity.json
template <>
inline constexpr auto kFields<agent::Identity> = std::tuple(
    field("node", &agent::Identity::node, Text{kMaxNameBytes}),
    field(
        "key_pem", [](auto& identity) -> auto& { return identity.tls.key_pem; }, SecretPem{}),
    field("csr_pem", &agent::Identity::csr_pem, kPem),
    field(
        "certificate_pem", [](auto& identity) -> auto& { return identity.tls.certificate_pem; },
        kPem),
    field("ca_pem", &agent::Identity::ca_pem, kPem));

}  // namespace muster::wire

namespace muster::agent {
namespace {

constexpr std::size_t kMaxPemBytes = 64u << 10;
constexpr std::size_t kMaxTroubleBytes = 1000;

std::filesystem::path fileOf(const AgentOptions& options) {
  return options.state_folder / "identity.json";
}

Result<void> save(const AgentOptions& options, const Identity& identity) {
  TRY_OK(io::makeDirs(options.state_folder, 0700));
  return io::writeFileAtomic(fileOf(options), wire::printMessage(identity), 0600);
}

Result<Identity> withExpiry(Identity identity) {
  if (!identity.enrolled()) return identity;
  TRY(info, io::describeCertificate(identity.tls.certificate_pem));
  identity.not_before = std::chrono::floor<std::chrono::milliseconds>(info.not_before);
  identity.not_after = std::chrono::floor<std::chrono::milliseconds>(info.not_after);
  return identity;
}

Result<Identity> loadStored(const AgentOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(fileOf(options), error))
    return fail(ErrorCode::NotFound, "no identity yet");
  TRY(text, io::readFile(fileOf(options), 8 * kMaxPemBytes));
  TRY(identity, wire::parseMessage<Identity>(text, 8 * kMaxPemBytes, "identity.json", "identity"));
  return withExpiry(std::move(identity));
}

Result<Identity> loadInstalled(const AgentOptions& options) {
  Identity identity;
  identity.node = options.node;
  TRY(key, io::readFile(options.key_file, kMaxPemBytes));
  TRY(certificate, io::readFile(options.certificate_file, kMaxPemBytes));
  TRY(ca, io::readFile(options.ca_pem_file, kMaxPemBytes));
  identity.tls = {Secret(key), certificate};
  identity.ca_pem = ca;
  return withExpiry(std::move(identity));
}

/// The request that was made earlier, or a new one, stored before it is used.
Result<Identity> prepare(const AgentOptions& options) {
  auto stored = loadStored(options);
  if (stored && !stored->csr_pem.empty()) return stored;
  TRY(made, io::makeKeyAndRequest(options.node.empty() ? options.mac : options.node));
  Identity identity;
  identity.node = options.node;
  identity.csr_pem = made.csr_pem;
  identity.tls.key_pem = made.key_pem;
  TRY_OK(save(options, identity));
  return identity;
}

Result<Identity> accept(const AgentOptions& options, Identity identity,
                        const wire::EnrollResponse& answer) {
  TRY(root, io::describeCertificate(answer.ca_pem));
  if (!options.ca_fingerprint.empty() && root.sha256_fingerprint != options.ca_fingerprint) {
    return fail(ErrorCode::Denied, "the controller names a root with fingerprint " +
                                       root.sha256_fingerprint + ", the kernel command line pins " +
                                       options.ca_fingerprint);
  }
  if (!options.node.empty() && options.node != answer.node) {
    return fail(ErrorCode::Denied, "the controller takes this machine for " + answer.node +
                                       ", the kernel command line says " + options.node);
  }
  identity.node = answer.node;
  identity.ca_pem = answer.ca_pem;
  identity.tls.certificate_pem = answer.certificate_pem;
  TRY(complete, withExpiry(std::move(identity)));
  TRY_OK(save(options, complete));
  return complete;
}

/// The controller wants a proof by the TPM before it signs.
bool asksForProof(const Result<io::HttpResponse>& response) {
  if (!response || response->status != 403) return false;
  const auto object = wire::parseObject(response->body, wire::kMaxTextBytes, "answer");
  return object && object->value("attest", false);
}

/// What the TPM says to the challenge; what it cannot say is told too, so that it becomes a
/// finding.
wire::AttestedRequest proofOf(Tpm& tpm, const wire::AttestChallenge& challenge,
                              wire::AttestedRequest request) {
  const auto secret = tpm.activate(challenge.id_object, challenge.encrypted_secret);
  const auto quote =
      tpm.quote(challenge.pcrs, wire::qualifyingData(challenge.nonce, request.csr_pem));
  if (!secret || !quote) {
    request.trouble = (secret ? quote.error() : secret.error()).str();
    return request;
  }
  request.secret = *secret;
  request.quote = quote->quote;
  request.signature = quote->signature;
  request.pcrs = quote->pcrs;
  return request;
}

Async<io::HttpResponse> attest(AgentOptions options, std::string csr_pem, io::HttpClient& client) {
  const auto tpm = makeTpmTools(options.state_folder / "tpm", options.tpm_tcti);
  wire::AttestedRequest proof{
      options.enrollment, options.mac, std::move(csr_pem), {}, {}, {}, {}, {}};
  const auto keys = tpm->makeKeys();
  if (keys) {
    auto response = co_await client.send(
        postTo(options.url, "/agent/v1/attest",
               toJson(wire::AttestRequest{options.enrollment, options.mac, keys->ek_public,
                                          keys->ek_certificate, keys->ak_public})));
    CO_TRY(body, bodyOf(response));
    CO_TRY(challenge, wire::parseAttestChallenge(body));
    proof = proofOf(*tpm, challenge, std::move(proof));
  } else {
    proof.trouble = keys.error().str();
  }
  proof.trouble.resize(cutToBytes(proof.trouble, kMaxTroubleBytes).size());
  co_return co_await client.send(postTo(options.url, "/agent/v1/attested", toJson(proof)));
}

}  // namespace

bool Identity::renewalDue(WallTime now) const {
  return now - not_before >
         std::min<std::chrono::milliseconds>(kRenewAge, (not_after - not_before) / 2);
}

io::TlsTrust Identity::trust() const {
  io::TlsTrust trust;
  trust.ca_pem = ca_pem;
  trust.identity = tls;
  return trust;
}

Result<Identity> loadIdentity(const AgentOptions& options) {
  auto stored = loadStored(options);
  if (options.mode == wire::Mode::Ram) {
    if (stored && !stored->enrolled()) return fail(ErrorCode::NotFound, "not enrolled yet");
    return stored;
  }
  auto installed = loadInstalled(options);
  if (!stored || !stored->enrolled()) return installed;
  if (!installed || stored->not_after > installed->not_after) return stored;
  return installed;
}

io::HttpRequest postTo(const io::Url& controller, const std::string& path, std::string body) {
  io::HttpRequest request;
  request.method = "POST";
  request.url = controller;
  request.url.target = path;
  request.headers["Content-Type"] = "application/json";
  request.body = std::move(body);
  request.max_body_bytes = wire::kMaxMessageBytes;
  return request;
}

Result<std::string> bodyOf(const Result<io::HttpResponse>& response) {
  if (!response) return fail(response.error());
  if (response->status == 200) return response->body;
  std::string words = "the controller answered " + std::to_string(response->status);
  if (auto object = wire::parseObject(response->body, wire::kMaxTextBytes, "answer");
      object && object->contains("error")) {
    const auto& error = (*object)["error"];
    if (error.is_string()) words += ": " + error.get<std::string>();
  }
  bool refused = response->status == 401 || response->status == 403;
  bool wrong = response->status >= 400 && response->status < 500;
  return fail(refused ? ErrorCode::Denied
              : wrong ? ErrorCode::InvalidInput
                      : ErrorCode::Unavailable,
              words);
}

Async<Identity> enroll(AgentOptions options, ClientFactory clients) {
  CO_TRY(identity, prepare(options));
  io::TlsTrust trust;
  trust.pinned_fingerprint = options.ca_fingerprint;
  trust.pin_is_root = true;
  auto client = clients(trust);
  wire::EnrollRequest request{options.enrollment, identity.csr_pem, options.mac};
  logInfo("agent", "asks {} to enroll with the key {}", options.url.str(),
          wire::requestFingerprint(identity.csr_pem));
  auto response = co_await client->send(postTo(options.url, "/agent/v1/enrol", toJson(request)));
  if (asksForProof(response)) {
    response = co_await attest(options, identity.csr_pem, *client);
  }
  CO_TRY(body, bodyOf(response));
  CO_TRY(answer, wire::parseEnrollResponse(body));
  co_return accept(options, identity, answer);
}

Async<wire::EnrollResponse> requestCertificate(io::HttpClient& client, io::Url controller,
                                               std::string csr_pem, std::string path) {
  auto response = co_await client.send(
      postTo(controller, path, toJson(wire::EnrollRequest{{}, std::move(csr_pem), {}})));
  CO_TRY(body, bodyOf(response));
  co_return wire::parseEnrollResponse(body);
}

Async<Identity> renewIdentity(AgentOptions options, Identity present, io::HttpClient& client) {
  CO_TRY(made, io::makeKeyAndRequest(present.node));
  auto answered = co_await requestCertificate(
      client, options.url, made.csr_pem,
      options.mode == wire::Mode::Ram ? kRenewalPath : kCertificatePath);
  CO_TRY(answer, std::move(answered));
  Identity renewed = present;
  renewed.tls.key_pem = made.key_pem;
  renewed.csr_pem = made.csr_pem;
  co_return accept(options, renewed, answer);
}

}  // namespace muster::agent
