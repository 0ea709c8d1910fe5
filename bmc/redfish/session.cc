// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/session.h"

#include "base/json_output.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "bmc/quirks.h"
#include "bmc/redfish/answers.h"
#include "bmc/redfish/basic_authentication.h"
#include "bmc/redfish/event_stream.h"

#include <algorithm>
#include <charconv>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr int kMaxBusyWaits = 6;
constexpr auto kFirstBusyWait = 1000ms;
constexpr auto kMaxBusyWait = 30s;
constexpr auto kReconnectPause = 500ms;
constexpr int kMaxLoginResets = 2;  ///< a broken connection does not use up a password
constexpr auto kLogoutLimit = 3s;
constexpr std::size_t kMaxIdleClients = kMaxConcurrentReads + 1;
constexpr std::size_t kMaxReplyBytes = 32u << 20;
constexpr std::size_t kShownLinkBytes = 200;
constexpr std::string_view kAlreadyCommitted =
    "SYS011";  ///< iDRAC: what is staged has a job, and nothing can be added

/// Retry-After in seconds (the date form is ignored), else exponential.
std::chrono::milliseconds busyWait(const RedfishReply& reply, int attempt) {
  std::chrono::milliseconds wait = kFirstBusyWait * (1 << std::min(attempt, 5));
  const std::string after = reply.header("Retry-After");
  int seconds = 0;
  auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), seconds);
  if (error == std::errc() && end == after.data() + after.size() && seconds > 0)
    wait = std::chrono::seconds(seconds);
  return std::min<std::chrono::milliseconds>(wait, kMaxBusyWait);
}

bool saysLater(const RedfishReply& reply) {
  if (reply.status == 429 || reply.status == 503) return true;
  if (reply.ok()) return false;
  auto later = tryLaterMessages();
  return std::any_of(later.begin(), later.end(),
                     [&](std::string_view id) { return hasMessageId(reply.body, id); });
}

}  // namespace

std::string pathOnly(const std::string& link) {
  if (link.empty() || link.front() == '/') return link;
  auto url = io::Url::parse(link);
  return url ? url->target : std::string();
}

Result<io::Url> urlOfLink(const std::string& base_url, const std::string& link) {
  if (link.empty() || link.front() == '/') return io::Url::parse(base_url + link);
  TRY(own, io::Url::parse(base_url));
  const auto absolute = io::Url::parse(link);
  if (absolute && absolute->origin() == own.origin()) return *absolute;
  return fail(
      ErrorCode::Corrupt,
      fmt::format("the BMC at {} answered with {}: {}, which is not followed", base_url,
                  absolute ? "an address of another host" : "a link that is no path of its own",
                  cutToBytes(link, kShownLinkBytes)));
}

std::string RedfishReply::header(const std::string& name) const {
  auto it = headers.find(name);
  return it == headers.end() ? std::string() : it->second;
}

std::string RedfishReply::etag() const {
  auto tag = header("ETag");
  return tag.empty() ? textAt(body, "@odata.etag") : tag;
}

Error errorOf(const RedfishReply& reply, const std::string& what) {
  const std::string words = serviceMessage(reply.body);
  std::string text = fmt::format("{}: the BMC answered {}{}{}", what, reply.status,
                                 words.empty() ? "" : ": ", words);
  switch (reply.status) {
    case 401:
    case 403:
      return Error(ErrorCode::Denied, std::move(text));
    case 404:
    case 410:
      return Error(ErrorCode::NotFound, std::move(text));
    case 409:
    case 412:
    case 428:
      return Error(ErrorCode::Conflict, std::move(text));
    case 408:
    case 429:
      return Error(ErrorCode::Unavailable, std::move(text));
    default:
      break;
  }
  if (hasMessageId(reply.body, kAlreadyCommitted))
    return Error(ErrorCode::Conflict, std::move(text));
  if (reply.status >= 500 || saysLater(reply))
    return Error(ErrorCode::Unavailable, std::move(text));
  return Error(ErrorCode::InvalidInput, std::move(text));
}

RedfishSession::RedfishSession(Options options, lifecycle::Store& store, Clock& clock,
                               HttpClientFactory make_client, lifecycle::Journal* journal)
    : options_(std::move(options)),
      clock_(clock),
      make_client_(std::move(make_client)),
      trust_(store, options_.node),
      own_journal_(journal ? nullptr : std::make_unique<lifecycle::Journal>(store, false)),
      journal_(journal ? *journal : *own_journal_),
      rate_limiter_(clock) {
  while (!options_.base_url.empty() && options_.base_url.back() == '/')
    options_.base_url.pop_back();
}

// ---- what drivers call

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
    Call request{.method = "PATCH", .path = path, .body = jsonText(body)};
    if (!tag.empty()) request.headers["If-Match"] = tag;
    CO_TRY(reply, co_await call(std::move(request)));
    if (reply.ok()) co_return std::move(reply);
    last = std::move(reply);
    if (last.status != 412 && last.status != 428) break;
  }
  co_return fail(errorOf(last, "PATCH " + path));
}

Async<RedfishReply> RedfishSession::patchOnce(std::string path, Json body, std::string etag) {
  Call request{.method = "PATCH",
               .path = path,
               .body = jsonText(body),
               .repeatable = false,
               .wait_busy = false};
  if (!etag.empty()) request.headers["If-Match"] = etag;
  CO_TRY(reply, co_await exchange(std::move(request), token_));
  if ((reply.status != 412 && reply.status != 428) || etag.empty()) co_return std::move(reply);
  Call plain{.method = "PATCH",
             .path = std::move(path),
             .body = jsonText(body),
             .repeatable = false,
             .wait_busy = false};  // refused as a whole
  co_return co_await exchange(std::move(plain), token_);
}

void RedfishSession::forgetLogin() {
  token_.clear();
  session_path_.clear();
  idle_.clear();
}

Async<RedfishReply> RedfishSession::upload(std::string path, MultipartBody body,
                                           std::chrono::milliseconds timeout) {
  Call request{.method = "POST",
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
  CO_TRY_OK(
      co_await get(isBasic(token_) ? "/redfish/v1/UpdateService" : "/redfish/v1/SessionService"));
  co_return co_await exchange(std::move(request), token_);
}

Async<RedfishReply> RedfishSession::peek(std::string path, bool with_token) {
  CO_TRY_OK(co_await ensureTrust());
  Call request{.method = "GET",
               .path = std::move(path),
               .timeout = 10s,
               .repeatable = false,
               .wait_busy = false};
  co_return co_await exchange(std::move(request), with_token ? token_ : std::string());
}

Async<void> RedfishSession::close() {
  if (token_.empty() || session_path_.empty()) co_return Result<void>();
  CO_TRY_OK(co_await closeSession(std::exchange(session_path_, {}), std::exchange(token_, {})));
  CO_TRY_OK(co_await rememberSession(""));
  co_return Result<void>();
}

Async<std::string> RedfishSession::rememberSession(std::string path) {
  journal_.attach(co_await asio::this_coro::executor);
  co_return co_await trust_.exchangeSession(journal_, std::move(path));
}

Async<void> RedfishSession::closeSession(std::string path, std::string token) {
  Call request{.method = "DELETE",
               .path = std::move(path),
               .timeout = kLogoutLimit,
               .repeatable = false,
               .wait_busy = false};
  CO_TRY_OK(co_await exchange(std::move(request), std::move(token)));
  co_return Result<void>();
}

// ---- session

Async<RedfishReply> RedfishSession::call(Call call) {
  for (int waits = 0;; ++waits) {
    CO_TRY(reply, co_await authorized(call));
    if (!call.wait_busy || waits >= kMaxBusyWaits || !saysLater(reply)) co_return std::move(reply);
    co_await clock_.sleep(busyWait(reply, waits));
  }
}

Async<RedfishReply> RedfishSession::authorized(Call call) {
  for (bool first = true;; first = false) {
    if (token_.empty()) {
      CO_TRY_OK(co_await login(""));
    }
    const std::string used = token_;
    CO_TRY(reply, co_await exchange(call, used));
    if (reply.status != 401 || !first) co_return std::move(reply);
    auto again = login(used);  // the session expired, or the BMC restarted
    CO_TRY_OK(co_await std::move(again));
  }
}

Async<void> RedfishSession::login(std::string stale_token) {
  auto permit = co_await one_login_.enter();
  if (!token_.empty() && token_ != stale_token)
    co_return Result<void>();  // another request has logged in meanwhile
  token_.clear();
  CO_TRY(passwords, candidates());
  std::optional<std::string> path;
  for (auto& candidate : passwords) {
    if (const auto may = trust_.mayTry(address(), options_.username, candidate.password);
        !may && (candidate.last || may.error().code() != ErrorCode::Denied)) {
      co_return fail(may.error());
    } else if (!may) {
      continue;
    }
    if (!path) {
      CO_TRY(found, co_await sessionsPath());
      path = std::move(found);
    }
    CO_TRY(taken, co_await tryPassword(*path, candidate));
    if (taken) co_return Result<void>();
  }
  co_return fail(trust_.refused(address(), options_.username));
}

/// One password, but while a change to the next one was interrupted: then both are tried, the new
/// one first.
Result<std::vector<RedfishSession::Candidate>> RedfishSession::candidates() {
  TRY(never, trust_.neverRotated());
  if (options_.next_password && !never) {
    TRY(next, options_.next_password());
    TRY(state, trust_.rotation(options_.username, next));
    if (state == Rotation::Done) return std::vector<Candidate>{{next, true}};
    if (state == Rotation::Interrupted) {
      TRY(password, options_.password());
      return std::vector<Candidate>{{next, true, false}, {password, false}};
    }
  }
  TRY(password, options_.password());
  return std::vector<Candidate>{{password}};
}

Async<bool> RedfishSession::tryPassword(std::string path, Candidate candidate) {
  const auto& password = candidate.password;
  Json account = Json::object();
  account["UserName"] = options_.username;
  account["Password"] = password.reveal();
  const Call request{
      .method = "POST", .path = path, .body = jsonText(account), .repeatable = false};
  if (path.empty()) co_return co_await tryBasic(std::move(candidate));
  for (int waits = 0, resets = 0;; ++waits) {
    auto answer = co_await exchange(request, std::string());
    if (!answer && answer.error().code() == ErrorCode::Unavailable && resets++ < kMaxLoginResets) {
      co_await clock_.sleep(kReconnectPause);  // the connection broke, which says nothing of it
      continue;
    }
    CO_TRY(reply, std::move(answer));
    if (reply.status == 401 || reply.status == 403) {
      CO_TRY_OK(trust_.rememberRefusal(options_.username, password));
      co_return false;
    }
    if (reply.ok()) {
      CO_TRY_OK(acceptLogin(reply, path));
      // A process that was killed left its session behind; BMCs have places for a handful of them.
      CO_TRY(left_open, co_await rememberSession(session_path_));
      if (!left_open.empty() && left_open != session_path_) {
        (void)co_await closeSession(left_open, token_);
      }
      uses_next_ = candidate.is_next;
      const bool both = candidate.is_next || !candidate.last || options_.next_password;
      CO_TRY_OK(both ? trust_.forgetRefusalOf(options_.username, password)
                     : trust_.forgetRefusal());
      co_return true;
    }
    // The service's words are left out: some echo the request.
    reply.body = Json();
    if (waits >= kMaxBusyWaits || !saysLater(reply))
      co_return fail(errorOf(reply, "logging in at " + address()));
    co_await clock_.sleep(busyWait(reply, waits));
  }
}

Result<void> RedfishSession::acceptLogin(const RedfishReply& reply,
                                         const std::string& sessions_path) {
  token_ = reply.header("X-Auth-Token");
  session_path_ = pathOnly(reply.header("Location"));
  if (session_path_.empty()) session_path_ = linkAt(reply.body, "@odata.id");
  if (session_path_.empty() && !textAt(reply.body, "Id").empty())
    session_path_ = sessions_path + "/" + textAt(reply.body, "Id");
  if (token_.empty())
    return fail(ErrorCode::Corrupt,
                "the BMC at " + address() + " accepted the login but gave no X-Auth-Token");
  return {};
}

Async<std::string> RedfishSession::sessionsPath() {
  CO_TRY(root, co_await exchange({.method = "GET", .path = "/redfish/v1/"}, std::string()));
  if (!root.ok() && root.status != 401)
    co_return fail(errorOf(root, "reading the service root of " + address()));
  if (root.ok()) CO_TRY_OK(expectResource(root, "/redfish/v1/"));
  co_return sessionsOf(root.body);
}

// ---- one exchange on the wire

Async<RedfishReply> RedfishSession::exchange(Call call, std::string token) {
  CO_TRY_OK(co_await ensureTrust());
  CO_TRY(url, urlOfLink(options_.base_url, call.path));
  if (call.method != "GET") ++writes_;
  io::HttpRequest request{.method = call.method,
                          .url = url,
                          .headers = call.headers,
                          .body = std::move(call.body),
                          .attachment = std::move(call.image),
                          .body_end = std::move(call.body_end),
                          .timeout = limitHere(clock_, call.timeout),
                          .max_body_bytes = kMaxReplyBytes};
  request.headers.try_emplace("Accept", "application/json");
  request.headers.try_emplace("Accept-Encoding", "identity");
  request.headers.try_emplace("OData-Version", "4.0");
  if (!request.body.empty()) request.headers.try_emplace("Content-Type", "application/json");
  if (!token.empty()) authorize(request.headers, token);

  const int attempts = call.repeatable ? 2 : 1;
  for (int attempt = 1;; ++attempt) {
    auto* places = call.upload ? options_.uploads : options_.requests;
    auto response =
        co_await (attempt < attempts ? sendInPlace(request, call.upload, places)
                                     : sendInPlace(std::move(request), call.upload, places));
    if (response && response->status == 406 && attempt < attempts) {
      request.headers.erase("Accept-Encoding");  // HPE Gen10+ refuses identity for some resources
      continue;
    }
    if (response)
      co_return RedfishReply{response->status, std::move(response->headers),
                             parseLenient(response->body)};
    if (response.error().code() != ErrorCode::Unavailable || attempt >= attempts)
      co_return fail(std::move(response.error()));
    auto pause = clock_.sleep(kReconnectPause);  // HPE resets reused connections
    co_await std::move(pause);
  }
}

/// After its own BMC's pace, a place among the requests to all. Only what tells of load counts
/// against their number: a BMC that says "later" or does not answer in time, not one that refuses
/// the connection because it restarts.
Async<io::HttpResponse> RedfishSession::sendInPlace(io::HttpRequest request, bool fresh,
                                                    lifecycle::AdaptiveSemaphore* places) {
  co_await rate_limiter_.next();
  auto send = sendOnce(std::move(request), fresh);
  if (!places) co_return co_await std::move(send);
  co_await places->acquire(options_.rank);
  std::exception_ptr called_off;
  try {
    auto response = co_await std::move(send);
    const bool busy = response ? response->status == 429 || response->status == 503
                               : response.error().code() == ErrorCode::Timeout;
    if (response || busy)
      places->release(!busy);
    else
      places->abandon();
    co_return response;
  } catch (...) {
    called_off = std::current_exception();
  }
  places->abandon();
  std::rethrow_exception(called_off);
}

Async<io::HttpResponse> RedfishSession::sendOnce(io::HttpRequest request, bool fresh) {
  auto client = takeClient(fresh);
  auto response = co_await client->send(std::move(request));
  if (!response) co_return judged(*client, std::move(response.error()));
  shown_ = client->peerFingerprint();
  if (!fresh && idle_.size() < kMaxIdleClients) idle_.push_back(std::move(client));
  co_return response;
}

Async<void> RedfishSession::stream(std::string path, std::string last_event_id,
                                   std::function<Result<void>(std::string_view)> sink) {
  CO_TRY_OK(co_await ensureTrust());
  CO_TRY(url, urlOfLink(options_.base_url, path));
  io::HttpRequest request{.url = url, .timeout = kEventSilence};
  request.headers = {{"Accept", "text/event-stream"},
                     {"Accept-Encoding", "identity"},
                     {"Cache-Control", "no-cache"},
                     {"OData-Version", "4.0"}};
  authorize(request.headers, token_);
  if (!last_event_id.empty()) request.headers["Last-Event-ID"] = last_event_id;
  co_await rate_limiter_.next();
  auto client = takeClient(true);
  auto response = co_await client->fetch(std::move(request), std::move(sink));
  if (!response) co_return fail(judged(*client, std::move(response.error())).error());
  const RedfishReply reply{response->status, std::move(response->headers),
                           parseLenient(response->body)};
  if (!reply.ok()) co_return fail(errorOf(reply, "GET " + path));
  co_return Result<void>();
}

std::unique_ptr<io::HttpClient> RedfishSession::takeClient(bool fresh) {
  if (fresh || idle_.empty()) return make_client_(tlsTrust());
  auto client = std::move(idle_.back());
  idle_.pop_back();
  return client;
}

}  // namespace muster::bmc
