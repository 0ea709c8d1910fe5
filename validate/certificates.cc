// SPDX-License-Identifier: Apache-2.0
// Certificates: one signed JSON value of the store a node; valid only while signature, expiry,
// declaration and bound facts all hold. The state folder has copies, for carrying.
#include "inventory/model/certificates.h"
#include "base/io/files.h"
#include "base/io/trusted_keys.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/certificate_keys.h"
#include "validate/certificate_migration.h"
#include "validate/part_binding.h"
#include "validate/validate.h"
#include "validate/validation_scope.h"

#include <fmt/ranges.h>

namespace muster::validate {
namespace {

using nlohmann::json;
constexpr std::string_view kFormat = "muster-certificate/1";
constexpr int kMaxTries = 16;  ///< a person may override while gates pass

json unsignedJson(const Certificate& certificate) {
  json out{{"format", kFormat},
           {"node", certificate.node.str()},
           {"basis", certificate.scope_hash},
           {"bound", certificate.bound},
           {"inventory_digest", certificate.inventory_digest},
           {"proven_at", toString(certificate.proven_at)},
           {"issued_at", toString(certificate.issued_at)},
           {"expires_at", toString(certificate.expires_at)},
           {"key_id", certificate.key_id}};
  if (!certificate.peer_baseline.empty()) out["learnt"] = certificate.peer_baseline;
  if (certificate.isOverride())
    out["override"] = {{"by", certificate.override_by}, {"reason", certificate.override_reason}};
  return out;
}

class StoredCertificates final : public CertificateStore {
 public:
  StoredCertificates(const inventory::Cluster& cluster, lifecycle::Store& store, Clock& clock,
                     signer::CertificateKey key, std::filesystem::path folder)
      : cluster_(cluster),
        store_(store),
        clock_(clock),
        key_(key),
        folder_(std::move(folder)),
        revocations_(store, folder_, std::move(key)) {}

  Result<std::optional<Certificate>> find(const NodeName& node) const override {
    TRY(text, store_.getValue(lifecycle::certificateKey(node)));
    if (!text) return std::nullopt;
    TRY(certificate, Certificate::fromJson(*text));
    return std::optional(std::move(certificate));
  }

  Result<Certificate> issue(Certificate certificate) override {
    certificate.issued_at = clock_.now();
    certificate.proven_at =
        std::min(certificate.proven_at,
                 certificate.issued_at);  // a clock that ran ahead gives no longer life
    const auto asked = certificate.expires_at;
    certificate.expires_at = certificate.proven_at + cluster_.certificates->lifetime;
    if (certificate.isOverride()) {
      certificate.expires_at =
          std::min(certificate.expires_at, certificate.issued_at + kMaxOverride);
      if (asked != WallTime{}) certificate.expires_at = std::min(certificate.expires_at, asked);
    }
    if (certificate.expires_at <= certificate.issued_at)
      return fail(
          ErrorCode::Denied,
          fmt::format("the passes of {} are from {}, older than the lifetime of a certificate",
                      certificate.node.str(), toString(certificate.proven_at)));
    certificate.key_id = key_.id();
    const auto text = jsonText(unsignedJson(certificate));
    TRY(signature, key_.sign(signer::Statement::NodeCertificate, text, text));
    certificate.signature = signature;
    TRY_OK(bindSiteKey(store_, key_));
    TRY_OK(voidOneAhead(certificate));
    TRY_OK(put(certificate));
    if (const auto copied = copyTo(folder_, certificate, io::writeFileUnsynced, 0600); !copied)
      logWarning("validate", "the copy of a certificate: {}; `muster cert export` writes it again",
                 copied.error().str());
    return certificate;
  }

  Result<void> verify(const Certificate& certificate) const override {
    TRY_OK(verifyAllButDeclaration(certificate));
    const auto* node = cluster_.findNode(certificate.node);
    if (certificate.inventory_digest != declarationDigest(cluster_, *node))
      return fail(ErrorCode::Denied,
                  "the node's declaration has changed since it was signed; validate again: muster "
                  "apply");
    return {};
  }

  bool isVoidByDeclaration(const Certificate& certificate) const override {
    const auto* node = cluster_.findNode(certificate.node);
    return node && verifyAllButDeclaration(certificate) &&
           certificate.inventory_digest != declarationDigest(cluster_, *node);
  }

  Result<void> verifyAllButDeclaration(const Certificate& certificate) const {
    TRY(revoked, revocations_.list());
    TRY_OK(verifyOffline(certificate, key_.public_pem, clock_.now(), *revoked));
    const auto* node = cluster_.findNode(certificate.node);
    if (!node)
      return fail(ErrorCode::Denied,
                  fmt::format("node {} is not in the inventory", certificate.node.str()));
    TRY(facts, store_.factsOf(lifecycle::Subject(certificate.node)));
    TRY_OK(sameFacts(certificate, facts));
    return {};
  }

  Result<void> revoke(const NodeName& node, const std::string& by,
                      const std::string& reason) override {
    const auto certificate = find(node);  // one that is damaged is revoked by the node's name
    // What was earned before is void by its time: a clock that runs behind must not save it.
    TRY(list, revocations_.list());
    auto at = clock_.now();
    if (certificate && *certificate) at = std::max(at, (*certificate)->proven_at);
    if (const auto* newest = list->newestOf(node)) at = std::max(at, newest->at);
    return revocations_.add(
        {certificate && *certificate ? (*certificate)->id() : "", node, at, by, reason});
  }

  Result<std::optional<WallTime>> revokedAt(const NodeName& node) const override {
    TRY(list, revocations_.list());
    const auto* newest = list->newestOf(node);
    return newest ? std::optional(newest->at) : std::nullopt;
  }

  Result<Exported> exportTo(const std::filesystem::path& folder) const override {
    Exported out;
    TRY_OK(revocations_.list());
    TRY(number, revocations_.exportTo(folder));
    TRY_OK(revocations_.exportAsOf(folder, clock_.now()));
    out.list_number = number;
    for (const auto& node : cluster_.nodes) {
      TRY(certificate, find(node.name));
      if (!certificate) continue;
      TRY_OK(copyTo(folder, *certificate, io::writeNamedFile, 0644));
      ++out.certificates;
    }
    return out;
  }

  Result<void> requireValid(const NodeName& node) const override {
    TRY(certificate, find(node));
    if (!certificate)
      return fail(ErrorCode::Denied, fmt::format("{} has no certificate", node.str()));
    if (certificate->node != node)
      return fail(ErrorCode::Denied, fmt::format("the certificate is of {}, not of {}",
                                                 certificate->node.str(), node.str()));
    return verify(*certificate);
  }

 private:
  static Result<void> copyTo(const std::filesystem::path& folder, const Certificate& certificate,
                             decltype(io::writeFileAtomic)& write, unsigned mode) {
    TRY_OK(io::makeDirs(folder, mode == 0600 ? 0700 : 0755));
    return write(folder / (certificate.node.str() + ".json"), certificate.toJson(), mode);
  }

  /// One that was signed by a clock that ran ahead looks newer than all that follow, and no
  /// revocation of the node would reach its copies: it is revoked by its id. The revocation is
  /// older than what replaces it.
  Result<void> voidOneAhead(const Certificate& next) {
    const auto before = find(next.node);
    if (!before || !*before || (*before)->proven_at <= next.issued_at) return {};
    return revocations_.add({(*before)->id(), next.node, next.proven_at - std::chrono::seconds(1),
                             "muster",
                             fmt::format("it was signed by a clock that ran ahead: {}",
                                         toString((*before)->proven_at))});
  }

  /// By whoever has the node's claim, or while nobody has it; a person's word at any time. In one
  /// commit with the certificate, so that a controller that was away too long signs nothing.
  Result<void> mayPut(const Certificate& certificate) {
    const lifecycle::Subject subject(certificate.node);
    if (store_.fenceOf(subject) != 0) return store_.checkClaim(subject);
    return certificate.isOverride()
               ? Result<void>()
               : store_.forgetFacts(
                     subject, {});  // forgets nothing: refused while another works on the node
  }

  Result<void> put(const Certificate& certificate) {
    const auto key = lifecycle::certificateKey(certificate.node);
    for (int tries = 0; tries < kMaxTries; ++tries) {
      TRY(before, store_.getValue(key));
      Result<bool> done = false;
      bool refused = false;
      const auto work = [&]() -> bool {  // what a batch has refused is not tried again call by call
        if (refused) return false;
        const auto may = mayPut(certificate);
        done = may ? store_.exchangeValue(key, before, certificate.toJson())
                   : Result<bool>(fail(may.error()));
        refused = !done || !*done;
        return !refused;
      };
      store_.together({work});
      if (!done) return fail(std::move(done).error());
      if (*done) return {};
    }
    return fail(ErrorCode::Unavailable, "the certificate of " + certificate.node.str() +
                                            " is being changed by other processes; try again");
  }

  /// Kinds of parts that it does not name are not bound: an agent that sees more than the one
  /// before must not void what a fleet has earned. Those that it names and nobody sees now stay
  /// bound as facts, which only another list replaces.
  Result<void> sameFacts(const Certificate& certificate,
                         const std::vector<lifecycle::Fact>& facts) const {
    const auto& policy = *cluster_.certificates;
    const auto now = boundFacts(policy, facts);
    for (const auto& [facet, value] : certificate.bound) {
      const auto seen = now.find(facet);
      if (facet.starts_with(kPartPrefix)) {
        const auto kind = facet.substr(kPartPrefix.size());
        if (onChangeOf(policy, kind) == inventory::PartChange::Nothing) continue;
        if (seen != now.end() && seen->second != value)
          return fail(ErrorCode::Denied,
                      fmt::format("parts ({}) were changed since it was signed: {}", kind,
                                  partsDifference(value, seen->second)));
      }
      if (seen == now.end())
        return fail(ErrorCode::Denied,
                    fmt::format("{} was {} when it was signed and is unknown now", facet, value));
      if (seen->second != value)
        return fail(ErrorCode::Denied, fmt::format("{} was {} when it was signed and is {} now",
                                                   facet, value, seen->second));
    }
    for (const auto& [facet, value] : now)
      if (!certificate.bound.contains(facet) && !facet.starts_with(kPartPrefix))
        return fail(ErrorCode::Denied,
                    fmt::format("{} = {} was not there when it was signed", facet, value));
    return {};
  }

  const inventory::Cluster& cluster_;
  lifecycle::Store& store_;
  Clock& clock_;
  signer::CertificateKey key_;
  std::filesystem::path folder_;
  Revocations revocations_;
};

}  // namespace

Result<void> verifyOffline(const Certificate& certificate, std::string_view public_pem,
                           WallTime now, const RevocationList& revocations) {
  const auto pem = io::trustedPemOf(public_pem, certificate.key_id);
  if (!pem)
    return fail(ErrorCode::Denied,
                fmt::format("signed by key {}, the key here is {}", certificate.key_id,
                            fmt::join(io::publicKeyIds(public_pem), " or ")));
  if (!certificate.isSignedBy(*pem))
    return fail(ErrorCode::Denied,
                "the signature is invalid: the certificate was changed after it was signed");
  if (const auto* revoked = revocations.find(certificate.id()))
    return fail(ErrorCode::Denied, fmt::format("revoked at {} by {}: {}", toString(revoked->at),
                                               revoked->by, revoked->reason));
  if (const auto* newest = revocations.newestOf(certificate.node);
      newest && certificate.proven_at <= newest->at)
    return fail(
        ErrorCode::Denied,
        fmt::format("{} was revoked at {} by {}, and this is proven from before: {}",
                    certificate.node.str(), toString(newest->at), newest->by, newest->reason));
  if (certificate.expires_at <= now)
    return fail(ErrorCode::Denied,
                fmt::format("expired at {}; validate the node again: muster apply",
                            toString(certificate.expires_at)));
  if (certificate.issued_at > now)
    return fail(ErrorCode::Denied,
                fmt::format("issued at {}, which is in the future: check the clock here",
                            toString(certificate.issued_at)));
  return {};
}

std::string Certificate::id() const {
  return io::sha256Hex(jsonText(unsignedJson(*this))).substr(0, 32);
}

bool Certificate::isSignedBy(std::string_view public_pem) const {
  return io::verify(public_pem, jsonText(unsignedJson(*this)), signature).has_value();
}

std::string Certificate::toJson() const {
  json out = unsignedJson(*this);
  out["signature"] = signature;
  return jsonText(out, 2) + "\n";
}

Result<Certificate> Certificate::fromJson(std::string_view text) {
  const auto parsed = jsonOrNone(text, kFileJson);
  if (!parsed.is_object() || parsed.value("format", "") != kFormat)
    return fail(ErrorCode::Corrupt, "this is not a muster certificate");
  try {
    Certificate out;
    out.node = NodeName(parsed.at("node").get<std::string>());
    parsed.at("basis").get_to(out.scope_hash);
    parsed.at("bound").get_to(out.bound);
    parsed.at("inventory_digest").get_to(out.inventory_digest);
    parsed.at("key_id").get_to(out.key_id);
    if (const auto peer_baseline = parsed.find("learnt"); peer_baseline != parsed.end())
      peer_baseline->get_to(out.peer_baseline);
    if (const auto word = parsed.find("override"); word != parsed.end()) {
      word->at("by").get_to(out.override_by);
      word->at("reason").get_to(out.override_reason);
      if (out.override_by.empty())
        return fail(ErrorCode::Corrupt, "the certificate is damaged: an override without a name");
    }
    parsed.at("signature").get_to(out.signature);
    TRY(proven, parseWallTime(parsed.at("proven_at").get<std::string>()));
    TRY(issued, parseWallTime(parsed.at("issued_at").get<std::string>()));
    TRY(expires, parseWallTime(parsed.at("expires_at").get<std::string>()));
    out.proven_at = proven, out.issued_at = issued, out.expires_at = expires;
    // What the signature does not cover must not be there, and one certificate is one text: two
    // readers that differ in duplicate keys, escapes or numbers would otherwise differ in what
    // holds.
    if (out.toJson() != text)
      return fail(ErrorCode::Corrupt,
                  "the certificate is not in the form in which it is signed: a key twice, one that "
                  "is not signed, other spaces or escapes; take the file as `muster cert export` "
                  "wrote it");
    return out;
  } catch (const json::exception& error) {
    return fail(ErrorCode::Corrupt, std::string("the certificate is damaged: ") + error.what());
  }
}

std::unique_ptr<CertificateStore> makeCertificateStore(const inventory::Cluster& cluster,
                                                       lifecycle::Store& store, Clock& clock,
                                                       signer::CertificateKey key,
                                                       std::filesystem::path folder) {
  return std::make_unique<StoredCertificates>(cluster, store, clock, std::move(key),
                                              std::move(folder));
}

}  // namespace muster::validate
