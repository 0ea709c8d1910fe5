// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/accounts.h"

#include "base/io/crypto.h"
#include "base/io/server_chain.h"
#include "bmc/ipmi/ipmi_bmc.h"

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxAccounts = 64;
constexpr auto kShownLimit = 90s;  ///< for a web server to take its new certificate
constexpr auto kShownPoll = 3s;

std::string wordsOf(const RedfishReply& reply) {
  auto words = serviceMessage(reply.body);
  return words.empty() ? fmt::format("status {}", reply.status) : words;
}

}  // namespace

// ---- the password

Async<Member> RedfishAccounts::ownAccount() {
  CO_TRY(root, co_await resources_.session().get("/redfish/v1/"));
  auto service_path = linkAt(root.body, "AccountService");
  if (service_path.empty()) service_path = "/redfish/v1/AccountService";
  CO_TRY(service, co_await resources_.session().get(service_path));
  auto accounts = linkAt(service.body, "Accounts");
  if (accounts.empty()) accounts = service_path + "/Accounts";
  CO_TRY(listed, co_await resources_.members(accounts, kMaxAccounts));
  for (auto& account : listed.found)  // iDRAC has sixteen places, most of them without a name
    if (textAt(account.json, "UserName") == resources_.session().username())
      co_return std::move(account);
  co_return fail(
      ErrorCode::NotFound,
      fmt::format("the BMC at {} lists no account \"{}\" whose password could be changed",
                  address(), resources_.session().username()));
}

Async<void> RedfishAccounts::rotatePassword() {
  if (!resources_.session().hasNextPassword())
    co_return fail(ErrorCode::NotFound, "no next password is declared for the BMC at " + address() +
                                            "; add rotate_to: {file: …} to its credential");
  CO_TRY(next, resources_.session().nextPassword());
  CO_TRY(before, resources_.session().trust().rotation(resources_.session().username(), next));
  if (before != Rotation::None)
    resources_.session().forgetLogin();  // which of the two holds is found by logging in
  CO_TRY(account, co_await ownAccount());
  if (before == Rotation::Done) co_return Result<void>();
  if (before == Rotation::Interrupted && resources_.session().usesNextPassword())
    co_return resources_.session().trust().setRotation(resources_.session().username(), next,
                                                       Rotation::Done);
  co_return co_await changePassword(account.uri, next);
}

Async<void> RedfishAccounts::changePassword(std::string account, Secret next) {
  CO_TRY(now, co_await resources_.session().get(
                  account));  // with its ETag, and a token that still holds
  auto& trust = resources_.session().trust();
  const auto user = resources_.session().username();
  CO_TRY_OK(trust.forgetRefusalOf(user, next));
  CO_TRY_OK(trust.setRotation(user, next, Rotation::Interrupted));
  Json body = Json::object();
  body["Password"] = next.reveal();
  auto answer = co_await resources_.session().patchOnce(account, std::move(body), now.etag());
  std::string words = answer ? wordsOf(*answer) : answer.error().str();
  if (answer && answer->status >= 400 &&
      answer->status < 500) {  // refused as a whole: it is as it was
    CO_TRY_OK(trust.setRotation(user, next, Rotation::None));
    co_return fail(
        answer->status == 401 ? ErrorCode::Unavailable : ErrorCode::InvalidInput,
        fmt::format(
            "the BMC at {} does not take the new password of \"{}\": {}; the old one still holds",
            address(), user, words));
  }
  resources_.session().forgetLogin();
  CO_TRY_OK(co_await resources_.session().get(account));
  const bool taken = resources_.session().usesNextPassword();
  CO_TRY_OK(trust.setRotation(user, next, taken ? Rotation::Done : Rotation::None));
  if (taken) co_return Result<void>();
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("the BMC at {} answered {} and still takes the old password of \"{}\"",
                             address(), words, user));
}

// ---- the certificate

Async<std::string> RedfishAccounts::certificateRequest(CertificateSubject subject) {
  CO_TRY(certificate, co_await findCertificate(resources_));
  if (!certificate->makesRequests())
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + address() + " offers neither GenerateCSR nor Certificate.Rekey");
  CO_TRY(request, co_await certificate->request(std::move(subject)));
  if (request.find("BEGIN CERTIFICATE REQUEST") == std::string::npos)
    co_return fail(ErrorCode::Corrupt,
                   "the BMC at " + address() + " answered without a certificate request in PEM");
  co_return request;
}

/// Before anything is sent.
Result<void> RedfishAccounts::checkCertificate(const std::string& pem) const {
  const auto described = io::describeCertificate(pem);
  if (!described)
    return fail(ErrorCode::InvalidInput,
                "what is to be installed is no certificate in PEM: " + described.error().text());
  if (described->not_after < resources_.clock().now())
    return fail(ErrorCode::InvalidInput, "the certificate for the BMC at " + address() +
                                             " has expired already; nothing was sent");
  const auto& declared = resources_.session().declaredTrust();
  if (declared.ca_pem.empty()) return {};
  if (const auto fits = io::checkServerChain(pem, declared.ca_pem, hostOf(address())); !fits)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format(
            "the new certificate for the BMC at {} would not pass the check against bmc_ca {}: "
            "{}; nothing was sent. Let that CA sign it, or change bmc_ca first",
            address(), declared.ca_file.string(), fits.error().text()));
  return {};
}

Async<void> RedfishAccounts::installCertificate(std::string pem) {
  CO_TRY_OK(checkCertificate(pem));
  CO_TRY(described, io::describeCertificate(pem));
  const auto fingerprint = described.sha256_fingerprint;
  auto& session = resources_.session();
  CO_TRY(certificate, co_await findCertificate(resources_));
  CO_TRY(pin, session.trust().pin());
  const auto holds =
      session.declaredTrust().declaresCertificate() ? session.shownCertificate() : pin.value_or("");
  if (holds == fingerprint) co_return Result<void>();
  if (!certificate->takesCertificates())
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + address() + " offers no ReplaceCertificate for its web server");
  CO_TRY_OK(session.trust().expectPin(fingerprint));
  auto answer = co_await certificate->install(pem);  // lost, when the web server restarts with it
  if (answer && !answer->ok())
    co_return fail(errorOf(*answer, "installing a certificate on " + address()));
  if (!answer && !answer.error().canRetry()) co_return fail(std::move(answer.error()));
  CO_TRY(shown, co_await waitForCertificate(fingerprint));
  if (shown) co_return Result<void>();
  CO_TRY_OK(co_await reset_.reset());  // iDRAC shows a new certificate after its restart only
  CO_TRY(shown_then, co_await waitForCertificate(fingerprint));
  if (shown_then) co_return Result<void>();
  co_return fail(
      ErrorCode::Unavailable,
      fmt::format(
          "the BMC at {} took the certificate but does not show it, after a restart neither",
          address()));
}

/// New connections only: an open one keeps the old certificate.
Async<bool> RedfishAccounts::waitForCertificate(std::string fingerprint) {
  const auto until = resources_.clock().steady() + kShownLimit;
  while (true) {
    resources_.session().forgetConnections();
    auto reply = co_await resources_.session().peek("/redfish/v1/", false);
    if (!reply && reply.error().code() == ErrorCode::Denied)
      co_return fail(std::move(reply.error()));
    if (reply && resources_.session().shownCertificate() == fingerprint)
      CO_TRY_OK(resources_.session().trust().promotePin(fingerprint,
                                                        resources_.session().declaredTrust().pin));
    CO_TRY(pin, resources_.session().trust().pin());
    if (pin == fingerprint) co_return true;
    if (resources_.clock().steady() >= until) co_return false;
    co_await resources_.clock().sleep(kShownPoll);
  }
}

}  // namespace muster::bmc
