// SPDX-License-Identifier: Apache-2.0
#include "api/doors.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/system_roots.h"

#include <fmt/format.h>

#include <sys/stat.h>

#include <algorithm>

namespace muster::api {
namespace {

constexpr std::size_t kMaxEvaluated = 1'024;
constexpr std::chrono::seconds kEvaluatedLife{5};
constexpr std::size_t kMaxCaBytes = 1u << 20;
constexpr const char* kOtherWays = "; a token, or the Unix socket, does without a certificate";

Problem refusedCertificate(std::string detail, std::string what_to_do) {
  return {401, "unauthenticated", std::move(detail), std::move(what_to_do) + kOtherWays};
}

Problem nobodyKnows(const Error& why) {
  return {503, "unavailable", "who may do what cannot be said: " + why.str(),
          "an administrator corrects the access file; it counts within ten seconds"};
}

Problem refusalFor(const io::EvaluatedCertificate& evaluated, WallTime now,
                   const std::filesystem::path& access_file) {
  const auto whose = fmt::format("the certificate of \"{}\"", evaluated.names.subject);
  const auto file = access_file.string();
  using Fault = io::CertificateFault;
  switch (evaluated.fault) {
    case Fault::Expired:
      return refusedCertificate(
          fmt::format("{} has expired, or one of its chain ({}; its own end: {})", whose,
                      evaluated.why, muster::toString(evaluated.names.not_after)),
          "get a new one from the authority that issued it");
    case Fault::NotYetValid:
      return refusedCertificate(
          fmt::format("{} is not valid yet: here it is {}", whose, muster::toString(now)),
          "see whether the clocks of this server and of the authority are right");
    case Fault::Revoked:
      return refusedCertificate(whose + " has been revoked",
                                "get a new one from the authority that issued it");
    case Fault::RevocationUnknown:
      return refusedCertificate(
          fmt::format("nobody can say whether {} has been revoked: {}", whose, evaluated.why),
          fmt::format("an administrator puts a revocation list that is in date, of each authority "
                      "of its chain, into the file that client-crl names in {}",
                      file));
    case Fault::OtherPurpose:
      return refusedCertificate(whose + " is not made for clients (extended key usage clientAuth)",
                                "ask the authority for one that is");
    case Fault::Unreadable:
      return refusedCertificate("the certificate cannot be read: " + evaluated.why,
                                "show another one");
    case Fault::Foreign:
    case Fault::None:
      break;
  }
  return refusedCertificate(
      fmt::format("{} comes from no authority that this server believes: {}", whose, evaluated.why),
      fmt::format("show one of an authority that client-ca names in {}, with the certificates "
                  "between",
                  file));
}

}  // namespace

std::string marksOf(const std::vector<std::filesystem::path>& files) {
  std::string out;
  for (const auto& file : files) {
    struct stat found{};
    if (::stat(file.c_str(), &found) != 0) {
      out += "-;";
      continue;
    }
    out += fmt::format("{} {} {} {}.{} {}.{} {} {};", found.st_dev, found.st_ino, found.st_size,
                       found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ctim.tv_sec,
                       found.st_ctim.tv_nsec, found.st_uid, found.st_mode);
  }
  return out;
}

Doors::Doors(std::filesystem::path access_file, const std::filesystem::path& site_ca)
    : access_file_(std::move(access_file)) {
  note(access_file_);
  auto table = AccessTable::read(access_file_);
  if (!table) {
    clients_trouble_ = oidc_trouble_ = table.error().str();
    problems_.push_back(table.error().str());
    asks_ = true;
    return;
  }
  table_ = std::move(*table);
  problems_ = table_->problems();
  clients_trouble_ = table_->certificatesClosed();
  asks_ = !table_->clientCa().empty() || !clients_trouble_.empty();
  if (const auto read = readClients(site_ca); !read)
    problems_.push_back(clients_trouble_ = read.error().str());
  oidc_trouble_ = table_->oidcClosed();
  if (const auto read = readProvider(); !read)
    problems_.push_back(oidc_trouble_ = read.error().str());
}

/// Before it is read: what changes meanwhile is seen the next time.
void Doors::note(const std::filesystem::path& file) {
  files_.push_back(file);
  mark_ += marksOf({file});
}

Result<void> Doors::readClients(const std::filesystem::path& site_ca) {
  if (!asks_ || !clients_trouble_.empty()) return {};
  note(table_->clientCa());
  if (!table_->clientCrl().empty()) note(table_->clientCrl());
  TRY(ca, readTrustedFile(table_->clientCa()));
  std::optional<std::string> crl;
  if (!table_->clientCrl().empty()) {
    TRY(text, readTrustedFile(table_->clientCrl()));
    crl = std::move(text);
  }
  auto trust = io::ClientTrust::make(ca, crl);
  if (!trust)
    return std::unexpected(std::move(trust).error().within(
        fmt::format("of client-ca {} and client-crl {}", table_->clientCa().string(),
                    crl ? table_->clientCrl().string() : "(none)")));
  if (const auto own = io::readFile(site_ca, kMaxCaBytes)) {
    const auto site = io::describeCertificate(*own);
    if (site && std::ranges::find(trust->fingerprints(), site->sha256_fingerprint) !=
                    trust->fingerprints().end())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("client-ca {} is the site's own authority, by which nodes prove who "
                              "they are; people and programs need another one",
                              table_->clientCa().string()));
  }
  ca_pem_ = std::move(ca);
  clients_ = std::move(*trust);
  return {};
}

Result<void> Doors::readProvider() {
  if (!table_->oidc() || !oidc_trouble_.empty()) return {};
  OidcProvider provider{*table_->oidc(), {}, {}};
  const auto& settings = provider.settings;
  if (!settings.secret_file.empty()) {
    note(settings.secret_file);
    TRY(secret, readTrustedFile(settings.secret_file, true));
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
    if (secret.empty())
      return fail(ErrorCode::InvalidInput, settings.secret_file.string() + " holds no secret");
    provider.secret = std::move(secret);
  }
  if (settings.ca_file.empty()) {
    TRY(roots, io::systemRoots());
    provider.ca_pem = std::move(roots);
  } else {
    note(settings.ca_file);
    TRY(ca, readTrustedFile(settings.ca_file));
    provider.ca_pem = std::move(ca);
  }
  oidc_ = std::move(provider);
  return {};
}

std::expected<Identity, Problem> Doors::evaluate(const io::ShownCertificate& shown, WallTime now) {
  const auto at = Steady::now();
  if (const auto known = evaluated_.find(shown.digest); known != evaluated_.end()) {
    const auto& answer = known->second.answer;
    if (at < known->second.until && (!answer || *answer->expires_at > now)) return answer;
  }
  if (evaluated_.size() >= kMaxEvaluated) evaluated_.clear();
  auto answer = evaluateAnew(shown, now);
  evaluated_.insert_or_assign(shown.digest, Evaluated{answer, at + kEvaluatedLife});
  return answer;
}

std::expected<Identity, Problem> Doors::evaluateAnew(const io::ShownCertificate& shown,
                                                     WallTime now) const {
  if (!clients_)
    return std::unexpected(Problem(503, "unavailable",
                                   "certificates cannot be evaluated: " + clients_trouble_,
                                   "an administrator corrects it; a token, or the Unix socket, "
                                   "does without a certificate"));
  const auto evaluated = clients_->evaluate(shown, now);
  if (evaluated.fault != io::CertificateFault::None)
    return std::unexpected(refusalFor(evaluated, now, access_file_));
  auto known = table_->identify(evaluated.names);
  if (known) return *std::move(known);
  if (known.error().code() != ErrorCode::NotFound)
    return std::unexpected(nobodyKnows(known.error()));
  return std::unexpected(refusedCertificate(
      fmt::format(
          "the certificate of \"{}\" is good, and {} says of nobody like that what they may",
          evaluated.names.subject, access_file_.string()),
      evaluated.names.common_name.empty()
          ? "an administrator adds a row to it by another of its names: certificate email=… viewer"
          : fmt::format("an administrator adds a row to it, such as: certificate cn=\"{}\" viewer",
                        evaluated.names.common_name)));
}

std::expected<Identity, Problem> Doors::admit(const OidcAccount& account) const {
  // Of a login that began before the file named another provider: nobody.
  if (oidc_ && oidc_->settings.issuer == account.issuer) {
    auto known = table_->identify(account);
    if (known) return *std::move(known);
    if (known.error().code() != ErrorCode::NotFound)
      return std::unexpected(nobodyKnows(known.error()));
  }
  return std::unexpected(denied(
      fmt::format("{} ({} of {}) may do nothing here: {} names neither that name nor one of "
                  "the groups: {}",
                  account.name, account.subject, account.issuer, access_file_.string(),
                  account.groups.empty() ? std::string("(none)")
                                         : fmt::format("{}", fmt::join(account.groups, ", "))),
      {}));
}

}  // namespace muster::api
