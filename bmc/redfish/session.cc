// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/session.h"

#include "base/json_output.h"
#include "bmc/redfish/answers.h"
#include "bmc/redfish/basic_authentication.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kPeekLimit = 10s;
constexpr auto kTokenHolds = 5s;  ///< after an answer; SessionTimeout is 30 s at least (DSP0266)

/// Read without a login, by the standard or by some services: such an answer shows no login.
bool isOpenToAll(std::string_view path) {
  constexpr std::string_view kOpen[] = {"/Registries", "/JsonSchemas", "$metadata", "/odata"};
  if (path == "/redfish/v1/" || path == "/redfish/v1" || !path.starts_with("/redfish/v1/"))
    return true;
  return std::ranges::any_of(
      kOpen, [path](std::string_view each) { return path.find(each) != path.npos; });
}

/// Without a slash at its end.
RedfishSession::Options trimmed(RedfishSession::Options options) {
  while (!options.base_url.empty() && options.base_url.back() == '/') options.base_url.pop_back();
  return options;
}

/// Whoever reads it: what was read is withheld from the BMC's words, also as Basic would send it: a
/// service with sessions may write a login down that way.
std::function<Result<Secret>()> noting(std::function<Result<Secret>()> read, std::string username,
                                       WithheldWords& withheld) {
  if (!read) return read;
  return [read = std::move(read), username = std::move(username), &withheld]() -> Result<Secret> {
    TRY(secret, read());
    withheld.addToken(basicToken(username, secret.reveal()));
    withheld.add(secret);
    return std::move(secret);
  };
}

}  // namespace

RedfishSession::RedfishSession(Options options, lifecycle::Store& store, Clock& clock,
                               HttpClientFactory make_client, lifecycle::Journal* journal)
    : options_(trimmed(std::move(options))),
      clock_(clock),
      memory_(store, options_.node),
      own_journal_(journal ? nullptr : std::make_unique<lifecycle::Journal>(store, false)),
      trust_({options_.base_url, options_.declared, options_.policy, options_.first_pin}, memory_,
             journal ? *journal : *own_journal_, std::move(make_client)),
      connections_(options_.base_url, {options_.requests, options_.uploads, options_.rank}, clock,
                   trust_),
      login_(
          options_.base_url,
          {options_.username, noting(options_.password, options_.username, connections_.withheld()),
           noting(options_.next_password, options_.username, connections_.withheld())},
          memory_, journal ? *journal : *own_journal_, clock, connections_) {}

Async<RedfishReply> RedfishSession::get(std::string path, std::chrono::milliseconds timeout,
                                        Busy busy) {
  CO_TRY(reply,
         co_await call(
             {.method = "GET", .path = path, .timeout = timeout, .wait_busy = busy == Busy::Wait}));
  if (!reply.ok()) co_return fail(errorOf(reply, "GET " + path));
  CO_TRY_OK(expectResource(reply, path));
  co_return std::move(reply);
}

Async<RedfishReply> RedfishSession::postAny(std::string path, Json body,
                                            std::chrono::milliseconds timeout) {
  co_return co_await call({.method = "POST",
                           .path = std::move(path),
                           .body = jsonText(body),
                           .timeout = timeout,
                           .repeatable = false});
}

Async<RedfishReply> RedfishSession::post(std::string path, Json body,
                                         std::chrono::milliseconds timeout) {
  CO_TRY(reply, co_await postAny(path, std::move(body), timeout));
  if (!reply.ok()) co_return fail(errorOf(reply, "POST " + path));
  co_return std::move(reply);
}

/// What is gone already is gone.
Async<RedfishReply> RedfishSession::erase(std::string path) {
  CO_TRY(reply, co_await call({.method = "DELETE", .path = path}));
  if (!reply.ok() && reply.status != 404) co_return fail(errorOf(reply, "DELETE " + path));
  co_return std::move(reply);
}

Async<RedfishReply> RedfishSession::patch(std::string path, Json body, std::string etag) {
  std::vector<std::string> ladder;
  if (!etag.empty()) ladder.push_back(etag);
  if (etag.rfind("W/", 0) == 0) ladder.push_back(etag.substr(2));
  ladder.emplace_back();
  RedfishReply last;
  for (const std::string& tag : ladder) {
    RedfishCall request{.method = "PATCH", .path = path, .body = jsonText(body)};
    if (!tag.empty()) request.headers["If-Match"] = tag;
    CO_TRY(reply, co_await call(std::move(request)));
    if (reply.ok()) co_return std::move(reply);
    last = std::move(reply);
    if (last.status != 412 && last.status != 428) break;
  }
  co_return fail(errorOf(last, "PATCH " + path));
}

Async<RedfishReply> RedfishSession::patchIfNoneMatch(std::string path, Json body,
                                                     std::string etag) {
  RedfishCall request{.method = "PATCH", .path = path, .body = jsonText(body)};
  request.headers["If-None-Match"] = std::move(etag);
  CO_TRY(reply, co_await call(std::move(request)));
  if (!reply.ok()) co_return fail(errorOf(reply, "PATCH " + path));
  co_return std::move(reply);
}

Async<RedfishReply> RedfishSession::patchOnce(std::string path, Json body, std::string etag) {
  RedfishCall request{.method = "PATCH",
                      .path = path,
                      .body = jsonText(body),
                      .repeatable = false,
                      .wait_busy = false};
  if (!etag.empty()) request.headers["If-Match"] = etag;
  CO_TRY(reply, co_await connections_.exchange(std::move(request), login_.token()));
  if ((reply.status != 412 && reply.status != 428) || etag.empty()) co_return std::move(reply);
  RedfishCall plain{.method = "PATCH",
                    .path = std::move(path),
                    .body = jsonText(body),
                    .repeatable = false,
                    .wait_busy = false};  // refused as a whole
  co_return co_await connections_.exchange(std::move(plain), login_.token());
}

void RedfishSession::forgetLogin() {
  login_.forget();
  connections_.forget();
}

Async<RedfishReply> RedfishSession::upload(std::string path, MultipartBody body,
                                           std::chrono::milliseconds timeout) {
  RedfishCall request{.method = "POST",
                      .path = std::move(path),
                      .timeout = timeout,
                      .repeatable = false,
                      .wait_busy = false,
                      .upload = true};
  request.headers["Content-Type"] = std::move(body.content_type);
  if (!body.cookie.empty()) request.headers["Cookie"] = std::move(body.cookie);
  if (!body.if_match.empty()) request.headers["If-Match"] = std::move(body.if_match);
  request.headers["Content-Length"] =
      std::to_string(body.bytes());  // iDRAC fails on chunked bodies
  request.body = std::move(body.begin);
  request.image = std::move(body.image);
  request.body_end = std::move(body.end);
  // An expired session must show before the upload, not by it.
  if (!isTokenProven())
    CO_TRY_OK(co_await get(isBasic(login_.token()) ? "/redfish/v1/UpdateService"
                                                   : "/redfish/v1/SessionService"));
  co_return co_await connections_.exchange(std::move(request), login_.token());
}

Async<RedfishReply> RedfishSession::peek(std::string path, bool with_token) {
  RedfishCall request{.method = "GET",
                      .path = std::move(path),
                      .timeout = kPeekLimit,
                      .repeatable = false,
                      .wait_busy = false};
  co_return co_await connections_.exchange(std::move(request),
                                           with_token ? login_.token() : std::string());
}

Async<void> RedfishSession::stream(std::string path, std::string last_event_id,
                                   std::function<Result<void>(std::string_view)> sink) {
  return connections_.stream(std::move(path), std::move(last_event_id), login_.token(),
                             std::move(sink));
}

bool RedfishSession::isTokenProven() const {
  return !proof_.token.empty() && proof_.token == login_.token() &&
         clock_.steady() - proof_.at <= kTokenHolds;
}

Async<RedfishReply> RedfishSession::call(RedfishCall call) {
  for (int waits = 0;; ++waits) {
    CO_TRY(reply, co_await authorized(call));
    if (!call.wait_busy || waits >= kMaxBusyWaits || !saysLater(reply)) co_return std::move(reply);
    co_await clock_.sleep(busyWait(reply, waits));
  }
}

Async<RedfishReply> RedfishSession::authorized(RedfishCall call) {
  for (bool first = true;; first = false) {
    if (login_.token().empty()) {
      CO_TRY_OK(co_await login_.renew(""));
    }
    const std::string used = login_.token();
    CO_TRY(reply, co_await connections_.exchange(call, used));
    if (reply.ok() && !isOpenToAll(call.path)) proof_ = {used, clock_.steady()};
    if (reply.status != 401 || !first) co_return std::move(reply);
    auto again = login_.renew(used);  // the session expired, or the BMC restarted
    CO_TRY_OK(co_await std::move(again));
  }
}

}  // namespace muster::bmc
