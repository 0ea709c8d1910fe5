// SPDX-License-Identifier: Apache-2.0
// cert: what a node's certificate says, whether it holds, and a person's word about it.
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "validate/validation_scope.h"

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kMaxFileBytes = 64u << 20;

struct Desk {
  std::unique_ptr<Session> session;
  std::unique_ptr<validate::CertificateStore> certificates;
  const inventory::Cluster& cluster() const { return session->cluster(); }
};

Result<Desk> open(const app::Options& options, const std::string& node) {
  TRY(live, effectiveCluster(options));
  if (!node.empty() && !live->cluster().findNode(NodeName(node)))
    return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", node));
  TRY(session, Session::openStored(options, std::move(live)));
  TRY(keys, app::Keys::loadOrCreate(options.state));
  Desk desk{std::move(session), nullptr};
  desk.certificates = validate::makeCertificateStore(
      desk.cluster(), desk.session->controller->store(), desk.session->controller->clock(),
      keys.certificates, options.state / "certificates");
  return desk;
}

Result<void> note(Desk& desk, const std::string& node, const std::string& text) {
  auto& controller = *desk.session->controller;
  TRY(sequence,
      controller.store().addEvent({0, controller.clock().now(), lifecycle::EventKind::Note,
                                   lifecycle::Subject(NodeName(node)), "", text}));
  (void)sequence;
  return {};
}

Result<std::string> overridden(const app::Options& options, const CertFlags& flags) {
  if (flags.reason.empty()) return fail(ErrorCode::InvalidInput, "say why: --reason TEXT");
  TRY(desk, open(options, flags.node));
  const auto user = app::userName();
  const auto& allowed = desk.cluster().certificates.may_override;
  if (std::find(allowed.begin(), allowed.end(), user) == allowed.end())
    return fail(
        ErrorCode::Denied,
        fmt::format("certificates.may_override of the inventory does not name {}; nothing was done",
                    user));
  const auto& node = *desk.cluster().findNode(NodeName(flags.node));
  TRY(facts, desk.session->controller->store().facts());
  validate::Certificate word;
  word.node = node.name;
  word.basis = validate::basisOf(desk.cluster(), node, facts);
  word.bound = validate::boundFacts(node.name, facts);
  if (word.bound.empty())
    return fail(
        ErrorCode::Conflict,
        fmt::format(
            "nothing is known of {} that a certificate could be bound to; start with: muster plan",
            flags.node));
  word.inventory_digest = validate::declarationDigest(desk.cluster(), node);
  word.proven_at = desk.session->controller->clock().now();
  word.expires_at = word.proven_at + std::chrono::hours(flags.hours);
  word.override_by = app::actorText();
  word.override_reason = flags.reason;
  // The log has it before the certificate counts.
  TRY_OK(note(desk, flags.node,
              fmt::format("{} lets it join for {} h although its gates have not passed: {}",
                          word.override_by, flags.hours, flags.reason)));
  TRY(issued, desk.certificates->issue(std::move(word)));
  return toString(issued.expires_at);
}

Result<void> revoked(const app::Options& options, const CertFlags& flags) {
  TRY(desk, open(options, flags.node));
  const auto by = app::actorText();
  TRY_OK(desk.certificates->revoke(NodeName(flags.node), by, flags.reason));
  return note(
      desk, flags.node,
      fmt::format("{} has revoked its certificate and the passes before: {}", by, flags.reason));
}

Result<validate::Certificate> verifiedOffline(const CertFlags& flags) {
  TRY(text, io::readFile(flags.file, kMaxFileBytes));
  TRY(key, io::readFile(flags.key, kMaxFileBytes));
  TRY(certificate, validate::Certificate::fromJson(text));
  validate::RevocationList list;
  if (!flags.revocations.empty()) {
    TRY(listed, io::readFile(flags.revocations, kMaxFileBytes));
    TRY(read, validate::RevocationList::fromJson(listed, key));
    list = std::move(read);
  }
  if (!flags.node.empty() && certificate.node.str() != flags.node)
    return fail(ErrorCode::Denied, fmt::format("the certificate is of {}, not of {}",
                                               certificate.node.str(), flags.node));
  TRY_OK(validate::verifyOffline(certificate, key, SystemClock().now(), list));
  return certificate;
}

}  // namespace

int certShow(const app::Options& options, const std::string& node) {
  const auto desk = open(options, node);
  if (!desk) return report(desk.error());
  const auto certificate = desk->certificates->find(NodeName(node));
  if (!certificate) return report(certificate.error());
  if (!*certificate) return report(Error(ErrorCode::NotFound, node + " has no certificate"));
  std::cout << (*certificate)->toJson();
  return kOk;
}

int certVerify(const app::Options& options, const std::string& node) {
  const auto desk = open(options, node);
  if (!desk) return report(desk.error());
  bool all_valid = true;
  for (const auto& each : desk->cluster().nodes) {
    if (!node.empty() && each.name.str() != node) continue;
    const auto valid = desk->certificates->requireValid(each.name);
    all_valid = all_valid && valid;
    std::cout << fmt::format("{}: {}\n", each.name.str(),
                             valid ? "valid" : "VOID: " + valid.error().str());
  }
  return all_valid ? kOk : kFailed;
}

int certVerifyOffline(const CertFlags& flags) {
  const auto certificate = verifiedOffline(flags);
  if (!certificate) return report(certificate.error());
  std::cout << fmt::format(
      "{}: signed, not expired (until {}){}{}\n", certificate->node.str(),
      toString(certificate->expires_at), flags.revocations.empty() ? "" : ", not revoked",
      certificate->isOverride() ? fmt::format("; an OVERRIDE by {}: {}", certificate->override_by,
                                              certificate->override_reason)
                                : "");
  std::cout << "it was proven with, and counts only while the node still has:\n";
  for (const auto& [gate, words] : certificate->learnt)
    std::cout << fmt::format("  gate {}: {}\n", gate, words);
  for (const auto& [facet, value] : certificate->bound)
    std::cout << fmt::format("  {:<32}{}\n", facet, value);
  if (flags.revocations.empty())
    std::cout << "whether it was revoked was not looked at: --revocations FILE\n";
  return kOk;
}

int certRevoke(const app::Options& options, const CertFlags& flags) {
  if (const auto done = revoked(options, flags); !done) return report(done.error());
  std::cout << fmt::format(
      "{0}: revoked for all controllers of the store; `muster monitor` drains it, `muster apply "
      "--nodes {0}` validates it again. To carry: {1}\n",
      flags.node, (options.state / "certificates" / validate::Revocations::kFile).string());
  return kOk;
}

int certExport(const app::Options& options, const CertFlags& flags) {
  const auto desk = open(options, "");
  if (!desk) return report(desk.error());
  const auto folder = flags.to.empty() ? options.state / "certificates" : flags.to;
  const auto written = desk->certificates->exportTo(folder);
  if (!written) return report(written.error());
  std::cout << fmt::format("{}: {} certificates, {}\n", folder.string(), written->certificates,
                           written->list_number == 0
                               ? std::string("no list: nothing was ever revoked")
                               : fmt::format("revocations {} in {}", written->list_number,
                                             validate::Revocations::kFile));
  return kOk;
}

int certOverride(const app::Options& options, const CertFlags& flags) {
  const auto until = overridden(options, flags);
  if (!until) return report(until.error());
  std::cout << fmt::format("{0} may join until {1}; `muster apply --nodes {0}` lets it\n",
                           flags.node, *until);
  return kOk;
}

}  // namespace muster::cli
