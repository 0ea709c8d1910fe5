// SPDX-License-Identifier: Apache-2.0
#include "pool/kube_api.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"
#include "inventory/model/pools.h"

#include <fmt/format.h>

#include <charconv>

namespace muster::pool::kube {

namespace {

constexpr std::chrono::milliseconds kRequestTimeout{30000};
constexpr std::chrono::seconds kTokenAge{
    60};  ///< tokens of service accounts are renewed in their files
constexpr std::chrono::milliseconds kLongestPause{10000};
constexpr int kMaxAttempts = 4;
constexpr int kMaxRestarts = 3;  ///< of a list that expired
constexpr int kPageItems = 250;
constexpr int kMaxPages = 1000;
constexpr std::size_t kMaxPemBytes = 1u << 20;
constexpr std::size_t kMaxAnswerBytes = 64u << 20;
constexpr std::size_t kQuotedBytes = 300;
constexpr std::string_view kBudgetCause = "DisruptionBudget";

std::chrono::milliseconds retryAfter(const io::HttpResponse& response) {
  const auto text = response.header("Retry-After");
  int seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return text.empty() ? std::chrono::milliseconds(0)
                      : std::chrono::milliseconds(std::max(seconds, 1) * 1000LL);
}

/// 2xx must be JSON; a failure may be the words of a proxy in between.
Result<Answer> readAnswer(const io::HttpResponse& response) {
  Answer answer;
  answer.status = response.status;
  answer.retry_after = retryAfter(response);
  answer.body = jsonOrNone(response.body, kServerJson);
  if (answer.body.is_discarded()) {
    if (answer.ok())
      return fail(ErrorCode::Corrupt, "the answer is not JSON: " +
                                          std::string(cutToBytes(response.body, kQuotedBytes)));
    answer.body = nullptr;
    answer.message = std::string(cutToBytes(response.body, kQuotedBytes));
  }
  if (textAt(answer.body, {"kind"}) != "Status" || textAt(answer.body, {"status"}) == "Success")
    return answer;
  // An eviction can fail in a Status object that travels with 201 Created.
  const auto& code = valueAt(answer.body, {"code"});
  if (answer.ok()) answer.status = code.is_number_integer() ? code.get<int>() : 500;
  answer.reason = textAt(answer.body, {"reason"});
  answer.message = textAt(answer.body, {"message"});
  for (const auto& cause : valueAt(answer.body, {"details", "causes"}))
    answer.causes.push_back({textAt(cause, {"reason"}), textAt(cause, {"message"})});
  return answer;
}

bool comesBackLater(const Answer& answer) {
  const bool busy = answer.status == 429 || answer.status / 100 == 5;
  return busy && answer.retry_after.count() > 0 && !answer.cause(kBudgetCause);
}

}  // namespace

const nlohmann::json& valueAt(const nlohmann::json& value,
                              std::initializer_list<const char*> path) {
  static const nlohmann::json none;
  const auto* at = &value;
  for (const char* key : path) {
    if (!at->is_object()) return none;
    auto found = at->find(key);
    if (found == at->end()) return none;
    at = &*found;
  }
  return *at;
}

std::string textAt(const nlohmann::json& value, std::initializer_list<const char*> path) {
  const auto& found = valueAt(value, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

const Answer::Cause* Answer::cause(std::string_view wanted) const {
  for (const auto& one : causes)
    if (one.reason == wanted) return &one;
  return nullptr;
}

Api::Api(inventory::KubernetesPool pool, HttpFactory http, Clock& clock)
    : pool_(std::move(pool)), http_(std::move(http)), clock_(clock) {}

/// Credentials are read at the moment of use; a client certificate lives as long as its
/// connections.
Result<Api::Session> Api::session() {
  const auto now = clock_.steady();
  if (session_ && pool_.token.declared() && now - session_->since > kTokenAge) {
    TRY(token, pool_.token.read());
    session_->token = std::move(token);
    session_->since = now;
  }
  if (session_) return *session_;
  io::TlsTrust trust;
  trust.pinned_fingerprint = pool_.pin;
  if (!pool_.ca.empty()) {
    TRY(pem, io::readFile(pool_.ca, kMaxPemBytes));
    trust.ca_pem = std::move(pem);
  }
  Session fresh;
  if (pool_.token.declared()) {
    TRY(token, pool_.token.read());
    fresh.token = std::move(token);
  } else {
    TRY(certificate, io::readFile(pool_.client_certificate, kMaxPemBytes));
    TRY(key, io::readFile(pool_.client_key, kMaxPemBytes));
    trust.identity = io::TlsIdentity{Secret(std::move(key)), std::move(certificate)};
  }
  fresh.client = http_(std::move(trust));
  fresh.since = now;
  session_ = fresh;
  return fresh;
}

Result<io::HttpRequest> Api::httpRequest(const Request& request, const Secret& token) const {
  std::string target = request.path;
  char mark = '?';
  for (const auto& [name, value] : request.query) {
    target += fmt::format("{}{}={}", mark, io::percentEncode(name), io::percentEncode(value));
    mark = '&';
  }
  auto base = pool_.server;
  if (base.ends_with('/')) base.pop_back();
  TRY(url, io::Url::parse(base + target));
  io::HttpRequest out;
  out.method = request.method;
  out.url = std::move(url);
  out.headers = {{"Accept", std::string(kJson)}, {"User-Agent", "muster"}};
  if (!token.empty()) out.headers["Authorization"] = "Bearer " + token.reveal();
  if (!request.body.is_null()) {
    out.headers["Content-Type"] = std::string(request.content_type);
    out.body = jsonText(request.body);
  }
  out.timeout = kRequestTimeout;
  out.max_body_bytes = kMaxAnswerBytes;
  return out;
}

Async<Answer> Api::send(Request request) {
  for (int attempt = 1;; ++attempt) {
    auto opened = session();
    if (!opened)
      co_return fail(
          std::move(opened).error().within("credentials for Kubernetes at " + pool_.server));
    CO_TRY(http, httpRequest(request, opened->token));
    auto response = co_await opened->client->send(std::move(http));
    const bool renewed_may_help =
        attempt == 1 &&
        (response ? response->status == 401 : response.error().code() == ErrorCode::Denied);
    if (renewed_may_help) {  // the token or the certificate may have been renewed in its file
      session_.reset();
      continue;
    }
    if (!response) co_return fail(std::move(response).error().within("Kubernetes"));
    auto answer = readAnswer(*response);
    if (!answer) co_return fail(std::move(answer).error().within("Kubernetes at " + pool_.server));
    if (!comesBackLater(*answer) || attempt >= kMaxAttempts) co_return std::move(*answer);
    co_await clock_.sleep(std::min(answer->retry_after, kLongestPause));
  }
}

Async<std::vector<nlohmann::json>> Api::list(
    std::string path, std::vector<std::pair<std::string, std::string>> query) {
  std::vector<nlohmann::json> items;
  std::string next;
  int restarts = 0;
  for (int page = 0; page < kMaxPages; ++page) {
    Request request;
    request.path = path;
    request.query = query;
    request.query.emplace_back("limit", std::to_string(kPageItems));
    if (!next.empty()) request.query.emplace_back("continue", next);
    CO_TRY(answer, co_await send(std::move(request)));
    if (answer.status == 410 && restarts++ < kMaxRestarts) {
      items.clear();
      next.clear();
      continue;
    }
    if (!answer.ok()) co_return fail(failure(answer, "listing " + path));
    const auto& found = valueAt(answer.body, {"items"});
    if (!found.is_array() && !found.is_null())
      co_return fail(ErrorCode::Corrupt, fmt::format("Kubernetes: the list {} has no items", path));
    for (const auto& item : found) items.push_back(item);
    next = textAt(answer.body, {"metadata", "continue"});
    if (next.empty()) co_return std::move(items);
  }
  co_return fail(
      ErrorCode::Corrupt,
      fmt::format("Kubernetes: the list {} does not end after {} pages", path, kMaxPages));
}

Error Api::failure(const Answer& answer, std::string_view what) const {
  const auto text =
      fmt::format("Kubernetes at {} refused {}: {} {}{}{}", pool_.server, what, answer.status,
                  answer.reason, answer.message.empty() ? "" : ": ", answer.message);
  switch (answer.status) {
    case 401:
      return Error(ErrorCode::Denied,
                   text + "; Kubernetes does not accept the token or client certificate: renew it");
    case 403:
      return Error(ErrorCode::Denied, text + "; docs/pools.md lists the rights that muster needs");
    case 404:
      return Error(ErrorCode::NotFound, text);
    case 409:
    case 410:
      return Error(ErrorCode::Conflict, text).retryable(true);
    case 429:
      return Error(ErrorCode::Unavailable, text + "; the server is busy");
    default:
      break;
  }
  if (answer.status / 100 == 5) return Error(ErrorCode::Unavailable, text);
  return Error(ErrorCode::InvalidInput, text);
}

}  // namespace muster::pool::kube
