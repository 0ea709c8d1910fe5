// SPDX-License-Identifier: Apache-2.0
// What the BMC and muster know each other by: the account's password, the BMC's certificate. Both
// are changed in two phases: what will be is remembered first, then ordered, then proven; a process
// that dies in between finds on the BMC which of the two holds.
#include "bmc/redfish/redfish_bmc.h"

#include "base/io/crypto.h"
#include "base/io/server_chain.h"
#include "bmc/ipmi/ipmi_bmc.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxAccounts = 64;
constexpr std::size_t kMaxCertificates = 16;
constexpr auto kShownLimit = 90s;  ///< for a web server to take its new certificate
constexpr auto kShownPoll = 3s;
constexpr auto kRequestLimit = 120s;  ///< a BMC makes an RSA key
constexpr auto kHpeRequestLimit = 10min;
constexpr auto kHpeRequestPoll = 5s;
constexpr int kRsaBits = 3072;

/// The service's words, unless they repeat the secret.
std::string wordsWithout(const Secret& secret, const RedfishReply& reply) {
  auto words = serviceMessage(reply.body);
  if (words.empty()) return fmt::format("status {}", reply.status);
  return words.find(secret.reveal()) == std::string::npos
             ? words
             : fmt::format("status {}; its words repeat the password", reply.status);
}

}  // namespace

// ---- the password

Async<RedfishBmc::Member> RedfishBmc::ownAccount() {
  CO_TRY(root, co_await session_->get("/redfish/v1/"));
  auto service_path = linkAt(root.body, "AccountService");
  if (service_path.empty()) service_path = "/redfish/v1/AccountService";
  CO_TRY(service, co_await session_->get(service_path));
  auto accounts = linkAt(service.body, "Accounts");
  if (accounts.empty()) accounts = service_path + "/Accounts";
  CO_TRY(listed, co_await members(accounts, kMaxAccounts, RedfishSession::kRequestTimeout));
  for (auto& account : listed.found)  // iDRAC has sixteen places, most of them without a name
    if (textAt(account.json, "UserName") == session_->username()) co_return std::move(account);
  co_return fail(
      ErrorCode::NotFound,
      fmt::format("the BMC at {} lists no account \"{}\" whose password could be changed",
                  address(), session_->username()));
}

Async<void> RedfishBmc::rotatePassword() {
  if (!session_->hasNextPassword())
    co_return fail(ErrorCode::NotFound, "no next password is declared for the BMC at " + address() +
                                            "; add rotate_to: {file: …} to its credential");
  CO_TRY(next, session_->nextPassword());
  CO_TRY(before, session_->trust().rotation(session_->username(), next));
  if (before != Rotation::None)
    session_->forgetLogin();  // which of the two holds is found by logging in
  CO_TRY(account, co_await ownAccount());
  if (before == Rotation::Done) co_return Result<void>();
  if (before == Rotation::Interrupted && session_->usesNextPassword())
    co_return session_->trust().setRotation(session_->username(), next, Rotation::Done);
  co_return co_await changePassword(account.uri, next);
}

Async<void> RedfishBmc::changePassword(std::string account, Secret next) {
  CO_TRY(now, co_await session_->get(account));  // with its ETag, and a token that still holds
  auto& trust = session_->trust();
  const auto user = session_->username();
  CO_TRY_OK(trust.forgetRefusalOf(user, next));
  CO_TRY_OK(trust.setRotation(user, next, Rotation::Interrupted));
  Json body = Json::object();
  body["Password"] = next.reveal();
  auto answer = co_await session_->patchOnce(account, std::move(body), now.etag());
  std::string words = answer ? wordsWithout(next, *answer) : answer.error().str();
  if (answer && answer->status >= 400 &&
      answer->status < 500) {  // refused as a whole: it is as it was
    CO_TRY_OK(trust.setRotation(user, next, Rotation::None));
    co_return fail(
        answer->status == 401 ? ErrorCode::Unavailable : ErrorCode::InvalidInput,
        fmt::format(
            "the BMC at {} does not take the new password of \"{}\": {}; the old one still holds",
            address(), user, words));
  }
  session_->forgetLogin();
  CO_TRY_OK(co_await session_->get(account));
  const bool taken = session_->usesNextPassword();
  CO_TRY_OK(trust.setRotation(user, next, taken ? Rotation::Done : Rotation::None));
  if (taken) co_return Result<void>();
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("the BMC at {} answered {} and still takes the old password of \"{}\"",
                             address(), words, user));
}

// ---- the certificate

/// iLO has a resource of its own below its SecurityService. Source: capture of an iLO 5,
/// redfishdocs "iLO HTTPS certificate"
Async<std::optional<RedfishBmc::CertificatePlaces>> RedfishBmc::hpeCertificatePlaces(Json manager) {
  const auto security = linkAt(manager, "Oem/Hpe/Links/SecurityService");
  if (security.empty()) co_return std::optional<CertificatePlaces>();
  CO_TRY(service, co_await session_->get(security));
  CertificatePlaces found;
  found.words = CertificatePlaces::Words::HpeHttpsCert;
  found.collection = found.certificate = linkAt(service.body, "Links/HttpsCert");
  if (found.certificate.empty()) co_return std::optional<CertificatePlaces>();
  CO_TRY(certificate, co_await session_->get(found.certificate));
  found.request = linkAt(certificate.body, "Actions/#HpeHttpsCert.GenerateCSR/target");
  found.replace = linkAt(certificate.body, "Actions/#HpeHttpsCert.ImportCertificate/target");
  co_return found;
}

/// Of the web server: the first of the manager's HTTPS certificates. Where the CertificateService
/// makes no request, the certificate itself may (Certificate.Rekey: Supermicro, AMI).
Async<RedfishBmc::CertificatePlaces> RedfishBmc::certificatePlaces() {
  CO_TRY(at, co_await places());
  CO_TRY(manager, co_await session_->get(at.manager));
  CO_TRY(hpe, co_await hpeCertificatePlaces(manager.body));
  if (hpe) co_return std::move(*hpe);
  CO_TRY(root, co_await session_->get("/redfish/v1/"));
  const auto service_path = linkAt(root.body, "CertificateService");
  if (service_path.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() +
                                            " has no CertificateService; install its certificate "
                                            "by its web page, then: muster bmc forget-pin");
  CO_TRY(service, co_await session_->get(service_path));
  auto protocol_path = linkAt(manager.body, "NetworkProtocol");
  if (protocol_path.empty()) protocol_path = at.manager + "/NetworkProtocol";
  CO_TRY(protocol, co_await session_->get(protocol_path));
  CertificatePlaces found;
  found.collection = linkAt(protocol.body, "HTTPS/Certificates");
  if (found.collection.empty()) found.collection = protocol_path + "/HTTPS/Certificates";
  found.request = linkAt(service.body, "Actions/#CertificateService.GenerateCSR/target");
  found.replace = linkAt(service.body, "Actions/#CertificateService.ReplaceCertificate/target");
  CO_TRY(certificates,
         co_await members(found.collection, kMaxCertificates, RedfishSession::kRequestTimeout));
  if (certificates.found.empty()) co_return found;
  const auto& own = certificates.found.front();
  found.certificate = own.uri;
  if (const auto rekey = linkAt(own.json, "Actions/#Certificate.Rekey/target");
      found.request.empty() && !rekey.empty()) {
    found.request = rekey;
    found.rekey_info = linkAt(own.json, "Actions/#Certificate.Rekey/@Redfish.ActionInfo");
    found.words = CertificatePlaces::Words::Rekey;
  }
  co_return found;
}

/// Whoever signs decides what stands in the certificate; what a BMC insists on is filled in.
Async<Json> RedfishBmc::requestParameters(CertificatePlaces at, CertificateSubject subject) {
  Json body = Json::object();
  if (at.words == CertificatePlaces::Words::Rekey) {
    if (at.rekey_info.empty()) co_return body;
    CO_TRY(info, co_await session_->get(at.rekey_info));
    const auto* parameters = find(info.body, "Parameters");
    for (const auto& each : parameters && parameters->is_array() ? *parameters : Json::array()) {
      const auto name = textAt(each, "Name");
      if (name == "KeyPairAlgorithm") body[name] = "TPM_ALG_RSA";
      if (name == "KeyBitLength") body[name] = kRsaBits;
    }
    co_return body;
  }
  const bool hpe = at.words == CertificatePlaces::Words::HpeHttpsCert;
  body["CommonName"] = subject.common_name;
  for (const char* field :
       {hpe ? "OrgName" : "Organization", hpe ? "OrgUnit" : "OrganizationalUnit"})
    body[field] = "muster";
  for (const char* field : {"City", "State"}) body[field] = "-";  // DSP0266 requires them
  body["Country"] = "XX";
  if (hpe) co_return body;
  body["AlternativeNames"] = subject.names;
  body["CertificateCollection"]["@odata.id"] = at.collection;
  co_return body;
}

/// iLO takes its time and shows the request when it is there; what it showed before is of an
/// earlier key.
Async<std::string> RedfishBmc::hpeRequest(CertificatePlaces at, Json parameters) {
  CO_TRY(old, co_await session_->get(at.certificate));
  CO_TRY_OK(co_await session_->post(at.request, std::move(parameters), kRequestLimit));
  const auto until = clock_.steady() + kHpeRequestLimit;
  while (true) {
    CO_TRY(now, co_await session_->get(at.certificate));
    auto request = textAt(now.body, "CertificateSigningRequest");
    if (!request.empty() && request != textAt(old.body, "CertificateSigningRequest"))
      co_return request;
    if (clock_.steady() >= until)
      co_return fail(ErrorCode::Timeout,
                     fmt::format("the BMC at {} shows no request {} min after it was ordered",
                                 address(), kHpeRequestLimit.count()));
    co_await clock_.sleep(kHpeRequestPoll);
  }
}

Async<std::string> RedfishBmc::certificateRequest(CertificateSubject subject) {
  CO_TRY(at, co_await certificatePlaces());
  if (at.request.empty())
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + address() + " offers neither GenerateCSR nor Certificate.Rekey");
  CO_TRY(body, co_await requestParameters(at, std::move(subject)));
  std::string request;
  if (at.words == CertificatePlaces::Words::HpeHttpsCert) {
    CO_TRY(shown, co_await hpeRequest(at, std::move(body)));
    request = std::move(shown);
  } else {
    CO_TRY(reply, co_await session_->post(at.request, std::move(body), kRequestLimit));
    request = textAt(reply.body, "CSRString");
  }
  if (request.find("BEGIN CERTIFICATE REQUEST") == std::string::npos)
    co_return fail(ErrorCode::Corrupt,
                   "the BMC at " + address() + " answered without a certificate request in PEM");
  co_return request;
}

Async<void> RedfishBmc::installCertificate(std::string pem) {
  const auto described = io::describeCertificate(pem);
  if (!described)
    co_return fail(ErrorCode::InvalidInput,
                   "what is to be installed is no certificate in PEM: " + described.error().text());
  if (described->not_after < clock_.now())
    co_return fail(ErrorCode::InvalidInput, "the certificate for the BMC at " + address() +
                                                " has expired already; nothing was sent");
  const auto& declared = session_->declaredTrust();
  if (!declared.ca_pem.empty()) {
    if (const auto fits = io::checkServerChain(pem, declared.ca_pem, hostOf(address())); !fits)
      co_return fail(
          ErrorCode::InvalidInput,
          fmt::format(
              "the new certificate for the BMC at {} would not pass the check against bmc_ca {}: "
              "{}; nothing was sent. Let that CA sign it, or change bmc_ca first",
              address(), declared.ca_file.string(), fits.error().text()));
  }
  CO_TRY(at, co_await certificatePlaces());
  CO_TRY(pin, session_->trust().pin());
  const auto holds =
      declared.declaresCertificate() ? session_->shownCertificate() : pin.value_or("");
  if (holds == described->sha256_fingerprint) co_return Result<void>();
  if (at.replace.empty() || at.certificate.empty())
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + address() + " offers no ReplaceCertificate for its web server");
  CO_TRY_OK(session_->trust().expectPin(described->sha256_fingerprint));
  Json body = Json::object();
  if (at.words == CertificatePlaces::Words::HpeHttpsCert) {
    body["Certificate"] = pem;
  } else {
    body["CertificateString"] = pem;
    body["CertificateType"] = "PEM";
    body["CertificateUri"]["@odata.id"] = at.certificate;
  }
  auto answer = co_await session_->postAny(
      at.replace, std::move(body));  // lost, when the web server restarts with it
  if (answer && !answer->ok())
    co_return fail(errorOf(*answer, "installing a certificate on " + address()));
  if (!answer && !answer.error().canRetry()) co_return fail(std::move(answer.error()));
  CO_TRY(shown, co_await waitForCertificate(described->sha256_fingerprint));
  if (shown) co_return Result<void>();
  auto reset = resetBmc();  // iDRAC shows a new certificate after its restart only
  CO_TRY_OK(co_await std::move(reset));
  CO_TRY(shown_then, co_await waitForCertificate(described->sha256_fingerprint));
  if (shown_then) co_return Result<void>();
  co_return fail(
      ErrorCode::Unavailable,
      fmt::format(
          "the BMC at {} took the certificate but does not show it, after a restart neither",
          address()));
}

/// New connections only: an open one keeps the old certificate.
Async<bool> RedfishBmc::waitForCertificate(std::string fingerprint) {
  const auto until = clock_.steady() + kShownLimit;
  while (true) {
    session_->forgetConnections();
    auto reply = co_await session_->peek("/redfish/v1/", false);
    if (!reply && reply.error().code() == ErrorCode::Denied)
      co_return fail(std::move(reply.error()));
    if (reply && session_->shownCertificate() == fingerprint)
      CO_TRY_OK(session_->trust().promotePin(fingerprint, session_->declaredTrust().pin));
    CO_TRY(pin, session_->trust().pin());
    if (pin == fingerprint) co_return true;
    if (clock_.steady() >= until) co_return false;
    co_await clock_.sleep(kShownPoll);
  }
}

}  // namespace muster::bmc
