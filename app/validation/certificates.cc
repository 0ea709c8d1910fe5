// SPDX-License-Identifier: Apache-2.0
#include "app/validation/certificates.h"

#include "app/site/session.h"
#include "base/io/regular_file.h"
#include "base/io/trusted_keys.h"
#include "inventory/model/certificates.h"
#include "inventory/model/cluster.h"
#include "validate/offline_verification.h"
#include "validate/validation_scope.h"

#include <algorithm>

namespace muster::app {
namespace {

constexpr std::size_t kMaxFileBytes = 64u << 20;

struct Certificates {
  std::unique_ptr<Session> session;
  std::unique_ptr<validate::CertificateStore> certificates;
  const inventory::Cluster& cluster() const { return session->cluster(); }
  validate::CertificateStore* operator->() const { return certificates.get(); }
};

Result<Certificates> open(const Options& options, const std::string& node) {
  TRY(live, effectiveCluster(options));
  if (!node.empty()) TRY_OK(requireNode(live->cluster(), node));
  TRY(session, Session::openStored(options, std::move(live)));
  TRY(keys, Keys::loadOrCreate(options.state));
  Certificates out{std::move(session), nullptr};
  out.certificates = validate::makeCertificateStore(
      out.cluster(), out.session->store(), out.session->controller->clock(), keys.certificates,
      options.state / "certificates");
  return out;
}

/// The list that a certificate is looked up in, as new as was asked for.
Result<validate::RevocationList> revocationsOf(const CertificateFile& file,
                                               const std::string& key) {
  if (file.revocations.empty()) {
    if (file.max_list_age_hours > 0 || file.least_number > 0)
      return fail(ErrorCode::InvalidInput,
                  "--max-list-age and --least-number are of a list: name it with --revocations");
    if (file.without_revocations) return validate::RevocationList{};
    return fail(ErrorCode::Denied,
                "whether it was revoked is unknown: --revocations FILE, or --without-revocations "
                "where that does not matter");
  }
  TRY(text, io::readRegularFile(file.revocations, kMaxFileBytes));
  auto list = validate::RevocationList::fromJson(text, key);
  if (!list) return fail(std::move(list).error().within(file.revocations));
  std::optional<validate::ListAsOf> as_of;
  const auto beside = file.as_of.empty()
                          ? file.revocations.parent_path() / validate::Revocations::kAsOfFile
                          : file.as_of;
  std::error_code unknown;
  if (!file.as_of.empty() || std::filesystem::exists(beside, unknown)) {
    TRY(statement, io::readRegularFile(beside, kMaxFileBytes));
    auto read = validate::ListAsOf::fromJson(statement, key);
    if (!read) return fail(std::move(read).error().within(beside));
    as_of = *read;
  }
  TRY_OK(validate::requireFresh(*list, as_of,
                                {std::chrono::hours(file.max_list_age_hours), file.least_number},
                                SystemClock().now()));
  return list;
}

}  // namespace

Result<validate::Certificate> certificateOf(const Options& options, const std::string& node) {
  TRY(certificates, open(options, node));
  TRY(certificate, certificates->find(NodeName(node)));
  if (!certificate) return fail(ErrorCode::NotFound, node + " has no certificate");
  return std::move(*certificate);
}

Result<std::vector<CertificateVerdict>> verifyCertificates(const Options& options,
                                                           const std::string& node) {
  TRY(certificates, open(options, node));
  std::vector<CertificateVerdict> out;
  for (const auto& each : certificates.cluster().nodes) {
    if (!node.empty() && each.name.str() != node) continue;
    const auto valid = certificates->requireValid(each.name);
    out.push_back({each.name, valid ? Result<void>() : Result<void>(fail(valid.error()))});
    if (const auto found = certificates->find(each.name); found && *found)
      out.back().override_by = (*found)->override_by;
  }
  return out;
}

Result<validate::Certificate> verifyCertificateFile(const CertificateFile& file) {
  TRY(text, io::readRegularFile(file.certificate, kMaxFileBytes));
  TRY(key, io::readPublicKeys(file.key));
  auto certificate = validate::Certificate::fromJson(text);
  if (!certificate) return fail(std::move(certificate).error().within(file.certificate));
  TRY(list, revocationsOf(file, key));
  if (!file.node.empty() && certificate->node.str() != file.node)
    return fail(ErrorCode::Denied, fmt::format("the certificate is of {}, not of {}",
                                               certificate->node.str(), file.node));
  TRY_OK(validate::verifyOffline(*certificate, key, SystemClock().now(), list));
  return certificate;
}

Result<WallTime> overrideCertificate(const Options& options, const CertificateOverride& request) {
  if (request.reason.empty()) return fail(ErrorCode::InvalidInput, "say why: --reason TEXT");
  TRY(certificates, open(options, request.node));
  const auto user = request.user.empty() ? userName() : request.user;
  const auto& allowed = certificates.cluster().certificates->may_override;
  if (std::find(allowed.begin(), allowed.end(), user) == allowed.end())
    return fail(
        ErrorCode::Denied,
        fmt::format("certificates.may_override of the inventory does not name {}; nothing was done",
                    user));
  const auto& node = *certificates.cluster().findNode(NodeName(request.node));
  auto& store = certificates.session->store();
  TRY(facts, store.facts());
  validate::Certificate word;
  word.node = node.name;
  word.scope_hash = validate::validationScopeHash(certificates.cluster(), node, facts);
  word.bound = validate::boundFacts(*certificates.cluster().certificates, node.name, facts);
  if (word.bound.empty())
    return fail(
        ErrorCode::Conflict,
        fmt::format(
            "nothing is known of {} that a certificate could be bound to; start with: muster plan",
            request.node));
  word.inventory_digest = validate::declarationDigest(certificates.cluster(), node);
  word.proven_at = certificates.session->controller->clock().now();
  word.expires_at = word.proven_at + std::chrono::hours(request.hours);
  word.override_by = actorText(options);
  word.override_reason = request.reason;
  // The log has it before the certificate counts.
  TRY_OK(addNote(store, lifecycle::Subject(node.name),
                 fmt::format("{} lets it join for {} h although its gates have not passed: {}",
                             word.override_by, request.hours, request.reason)));
  TRY(issued, certificates->issue(std::move(word)));
  return issued.expires_at;
}

std::filesystem::path revocationListOf(const std::filesystem::path& state) {
  return state / "certificates" / validate::Revocations::kFile;
}

Result<bool> revokeCertificate(const Options& options, const std::string& node,
                               const std::string& reason) {
  TRY(certificates, open(options, node));
  const auto by = actorText(options);
  const auto found = certificates->find(NodeName(node));
  const bool had_certificate = !found || *found;  // a damaged one is revoked, too
  TRY_OK(certificates->revoke(NodeName(node), by, reason));
  TRY_OK(addNote(certificates.session->store(), lifecycle::Subject(NodeName(node)),
                 fmt::format("{} has revoked {}: {}", by,
                             had_certificate ? "its certificate and the passes before"
                                             : "its passes; it had no certificate",
                             reason)));
  return had_certificate;
}

Result<CertificateExport> exportCertificates(const Options& options,
                                             const std::filesystem::path& folder) {
  TRY(certificates, open(options, ""));
  CertificateExport out{folder.empty() ? options.state / "certificates" : folder, 0, 0};
  TRY(written, certificates->exportTo(out.folder));
  out.certificates = static_cast<std::size_t>(written.certificates);
  out.list_number = static_cast<std::uint64_t>(written.list_number);
  return out;
}

}  // namespace muster::app
