// What the BMC and muster know each other by: the account's password, the BMC's certificate. Both are changed in two phases: what will be
// is remembered first, then ordered, then proven; a process that dies in between finds on the BMC which of the two holds.
#include "bmc/redfish_bmc.h"

#include "base/io/crypto.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxAccounts = 64;
constexpr std::size_t kMaxCertificates = 16;
constexpr auto kShownLimit = 90s;      ///< for a web server to take its new certificate
constexpr auto kShownPoll = 3s;
constexpr auto kRequestLimit = 120s;   ///< a BMC makes an RSA key

/// The service's words, unless they repeat the secret.
std::string wordsWithout(const Secret& secret, const RedfishReply& reply) {
  auto words = serviceMessage(reply.body);
  if (words.empty()) return fmt::format("status {}", reply.status);
  return words.find(secret.reveal()) == std::string::npos ? words : fmt::format("status {}; its words repeat the password", reply.status);
}

}  // namespace

// ---- the password

Async<RedfishBmc::Member> RedfishBmc::ownAccount() {
  auto read_root = session_->get("/redfish/v1/");
  CO_TRY(root, co_await std::move(read_root));
  auto service_path = linkAt(root.body, "AccountService");
  if (service_path.empty()) service_path = "/redfish/v1/AccountService";
  auto read = session_->get(service_path);
  CO_TRY(service, co_await std::move(read));
  auto accounts = linkAt(service.body, "Accounts");
  if (accounts.empty()) accounts = service_path + "/Accounts";
  auto list = members(accounts, kMaxAccounts, RedfishSession::kRequestTimeout);
  CO_TRY(listed, co_await std::move(list));
  for (auto& account : listed.found)  // iDRAC has sixteen places, most of them without a name
    if (textAt(account.json, "UserName") == session_->username()) co_return std::move(account);
  co_return fail(ErrorCode::NotFound, fmt::format("the BMC at {} lists no account \"{}\" whose password could be changed", address(), session_->username()));
}

Async<void> RedfishBmc::rotatePassword() {
  if (!session_->hasNextPassword())
    co_return fail(ErrorCode::NotFound, "no next password is declared for the BMC at " + address() + "; add next: {file: …} to its credential");
  CO_TRY(next, session_->nextPassword());
  CO_TRY(before, session_->trust().rotation(session_->username(), next));
  if (before != Rotation::None) session_->forgetLogin();  // which of the two holds is found by logging in
  auto find = ownAccount();
  CO_TRY(account, co_await std::move(find));
  if (before == Rotation::Done) co_return Result<void>();
  if (before == Rotation::Interrupted && session_->usesNextPassword()) co_return session_->trust().setRotation(session_->username(), next, Rotation::Done);
  auto change = changePassword(account.uri, next);
  co_return co_await std::move(change);
}

Async<void> RedfishBmc::changePassword(std::string account, Secret next) {
  auto read = session_->get(account);
  CO_TRY(now, co_await std::move(read));  // with its ETag, and a token that still holds
  auto& trust = session_->trust();
  const auto user = session_->username();
  CO_TRY_OK(trust.forgetRefusalOf(user, next));
  CO_TRY_OK(trust.setRotation(user, next, Rotation::Interrupted));
  Json body = Json::object();
  body["Password"] = next.reveal();
  auto write = session_->patchOnce(account, std::move(body), now.etag());
  auto answer = co_await std::move(write);
  std::string words = answer ? wordsWithout(next, *answer) : answer.error().str();
  if (answer && answer->status >= 400 && answer->status < 500) {  // refused as a whole: it is as it was
    CO_TRY_OK(trust.setRotation(user, next, Rotation::None));
    co_return fail(answer->status == 401 ? ErrorCode::Unavailable : ErrorCode::InvalidInput,
                   fmt::format("the BMC at {} does not take the new password of \"{}\": {}; the old one still holds", address(), user, words));
  }
  session_->forgetLogin();
  auto prove = session_->get(account);
  CO_TRY_OK(co_await std::move(prove));
  const bool taken = session_->usesNextPassword();
  CO_TRY_OK(trust.setRotation(user, next, taken ? Rotation::Done : Rotation::None));
  if (taken) co_return Result<void>();
  co_return fail(ErrorCode::Unavailable, fmt::format("the BMC at {} answered {} and still takes the old password of \"{}\"", address(), words, user));
}

// ---- the certificate

/// Of the web server: the first of the manager's HTTPS certificates.
Async<RedfishBmc::CertificatePlaces> RedfishBmc::certificatePlaces() {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  auto read_root = session_->get("/redfish/v1/");
  CO_TRY(root, co_await std::move(read_root));
  const auto service_path = linkAt(root.body, "CertificateService");
  if (service_path.empty()) co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " has no CertificateService; install its certificate by its web page, then: muster bmc forget-pin");
  auto read = session_->get(service_path);
  CO_TRY(service, co_await std::move(read));
  auto read_manager = session_->get(at.manager);
  CO_TRY(manager, co_await std::move(read_manager));
  auto protocol_path = linkAt(manager.body, "NetworkProtocol");
  if (protocol_path.empty()) protocol_path = at.manager + "/NetworkProtocol";
  auto read_protocol = session_->get(protocol_path);
  CO_TRY(protocol, co_await std::move(read_protocol));
  CertificatePlaces found;
  found.collection = linkAt(protocol.body, "HTTPS/Certificates");
  if (found.collection.empty()) found.collection = protocol_path + "/HTTPS/Certificates";
  found.request = linkAt(service.body, "Actions/#CertificateService.GenerateCSR/target");
  found.replace = linkAt(service.body, "Actions/#CertificateService.ReplaceCertificate/target");
  auto list = members(found.collection, kMaxCertificates, RedfishSession::kRequestTimeout);
  CO_TRY(certificates, co_await std::move(list));
  if (!certificates.found.empty()) found.certificate = certificates.found.front().uri;
  co_return found;
}

Async<std::string> RedfishBmc::certificateRequest(CertificateSubject subject) {
  auto find = certificatePlaces();
  CO_TRY(at, co_await std::move(find));
  if (at.request.empty()) co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " offers no GenerateCSR");
  Json body = Json::object();
  body["CommonName"] = subject.common_name;
  body["AlternativeNames"] = subject.names;
  for (const char* field : {"Organization", "OrganizationalUnit"}) body[field] = "muster";
  for (const char* field : {"City", "State"}) body[field] = "-";  // DSP0266 requires them; whoever signs decides what stands in the certificate
  body["Country"] = "XX";
  body["CertificateCollection"]["@odata.id"] = at.collection;
  auto post = session_->post(at.request, std::move(body), kRequestLimit);
  CO_TRY(reply, co_await std::move(post));
  auto request = textAt(reply.body, "CSRString");
  if (request.find("BEGIN CERTIFICATE REQUEST") == std::string::npos) co_return fail(ErrorCode::Corrupt, "the BMC at " + address() + " answered GenerateCSR without a request in PEM");
  co_return request;
}

Async<void> RedfishBmc::installCertificate(std::string pem) {
  const auto described = io::describeCertificate(pem);
  if (!described) co_return fail(ErrorCode::InvalidInput, "what is to be installed is no certificate in PEM: " + described.error().text());
  if (described->not_after < clock_.now()) co_return fail(ErrorCode::InvalidInput, "the certificate for the BMC at " + address() + " has expired already; nothing was sent");
  auto find = certificatePlaces();
  CO_TRY(at, co_await std::move(find));
  CO_TRY(pin, session_->trust().pin());
  if (pin == described->sha256_fingerprint) co_return Result<void>();
  if (at.replace.empty() || at.certificate.empty()) co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " offers no ReplaceCertificate for its web server");
  CO_TRY_OK(session_->trust().expectPin(described->sha256_fingerprint));
  Json body = Json::object();
  body["CertificateString"] = pem;
  body["CertificateType"] = "PEM";
  body["CertificateUri"]["@odata.id"] = at.certificate;
  auto post = session_->postAny(at.replace, std::move(body));
  auto answer = co_await std::move(post);  // lost, when the web server restarts with it
  if (answer && !answer->ok()) co_return fail(errorOf(*answer, "installing a certificate on " + address()));
  if (!answer && !answer.error().canRetry()) co_return fail(std::move(answer.error()));
  auto first = waitForCertificate(described->sha256_fingerprint);
  CO_TRY(shown, co_await std::move(first));
  if (shown) co_return Result<void>();
  auto reset = resetBmc();  // iDRAC shows a new certificate after its restart only
  CO_TRY_OK(co_await std::move(reset));
  auto second = waitForCertificate(described->sha256_fingerprint);
  CO_TRY(shown_then, co_await std::move(second));
  if (shown_then) co_return Result<void>();
  co_return fail(ErrorCode::Unavailable, fmt::format("the BMC at {} took the certificate but does not show it, after a restart neither", address()));
}

/// New connections only: an open one keeps the old certificate.
Async<bool> RedfishBmc::waitForCertificate(std::string fingerprint) {
  const auto until = clock_.steady() + kShownLimit;
  while (true) {
    session_->forgetConnections();
    auto look = session_->peek("/redfish/v1/", false);
    auto reply = co_await std::move(look);
    if (!reply && reply.error().code() == ErrorCode::Denied) co_return fail(std::move(reply.error()));
    CO_TRY(pin, session_->trust().pin());
    if (pin == fingerprint) co_return true;
    if (clock_.steady() >= until) co_return false;
    auto pause = clock_.sleep(kShownPoll);
    co_await std::move(pause);
  }
}

}  // namespace muster::bmc
