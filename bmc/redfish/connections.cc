// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/connections.h"

#include "base/limits.h"
#include "bmc/redfish/basic_authentication.h"
#include "bmc/redfish/event_stream.h"

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kReconnectPause = 500ms;
constexpr std::size_t kMaxIdleClients = kMaxConcurrentReads + 1;
constexpr std::size_t kMaxReplyBytes = 32u << 20;

}  // namespace

Async<void> RedfishConnections::ensureTrust() {
  CO_TRY_OK(co_await trust_.ensure());
  if (auto first = trust_.takeFirst()) idle_.push_back(std::move(first));
  co_return Result<void>();
}

Async<RedfishReply> RedfishConnections::exchange(RedfishCall call, std::string token) {
  CO_TRY_OK(co_await ensureTrust());
  withheld_.addToken(token);
  const auto url = urlOfLink(base_url_, call.path);
  if (!url) co_return fail(withheld_.without(url.error()));  // it shows the link
  if (call.method != "GET" && !call.of_login) ++writes_;
  io::HttpRequest request{.method = call.method,
                          .url = *url,
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
    auto* permits = call.upload ? limits_.uploads : limits_.requests;
    auto response =
        co_await (attempt < attempts ? sendWithPermit(request, call.upload, permits)
                                     : sendWithPermit(std::move(request), call.upload, permits));
    if (response && response->status == 406 && attempt < attempts) {
      // HPE Gen10+ refuses identity for some resources.
      request.headers.erase("Accept-Encoding");  // NOLINT(bugprone-use-after-move): not the last
      continue;
    }
    if (response) co_return replyOf(*std::move(response));
    if (response.error().code() != ErrorCode::Unavailable || attempt >= attempts)
      co_return fail(std::move(response.error()));
    auto pause = clock_.sleep(kReconnectPause);  // HPE resets reused connections
    co_await std::move(pause);
  }
}

RedfishReply RedfishConnections::replyOf(io::HttpResponse response) const {
  RedfishReply reply{response.status, std::move(response.headers), parseLenient(response.body),
                     response.body.size()};
  withheld_.takeOutOf(reply.body, !reply.ok());
  return reply;
}

/// After its own BMC's rate limit, a permit among the requests to all. Only what tells of load
/// counts against their number: a BMC that says "later" or does not answer in time, not one that
/// refuses the connection because it restarts.
Async<io::HttpResponse> RedfishConnections::sendWithPermit(io::HttpRequest request, bool fresh,
                                                           lifecycle::AdaptiveSemaphore* permits) {
  co_await rate_limiter_.next();
  auto send = sendOnce(std::move(request), fresh);
  if (!permits) co_return co_await std::move(send);
  co_await permits->acquire(limits_.rank);
  std::exception_ptr called_off;
  try {
    auto response = co_await std::move(send);
    const bool busy = response ? response->status == 429 || response->status == 503
                               : response.error().code() == ErrorCode::Timeout;
    if (response || busy)
      permits->release(!busy);
    else
      permits->abandon();
    co_return response;
  } catch (...) {
    called_off = std::current_exception();
  }
  permits->abandon();
  std::rethrow_exception(called_off);
}

Async<io::HttpResponse> RedfishConnections::sendOnce(io::HttpRequest request, bool fresh) {
  auto client = takeClient(fresh);
  auto response = co_await client->send(std::move(request));
  if (!response) co_return fail(evaluated(*client, std::move(response.error())));
  trust_.noteShown(client->peerFingerprint());
  if (!fresh && idle_.size() < kMaxIdleClients) idle_.push_back(std::move(client));
  co_return response;
}

/// Connections to whoever showed another certificate before are of no use any more.
Error RedfishConnections::evaluated(io::HttpClient& client, Error error) {
  const std::string pinned = trust_.pinned();
  auto meaning = trust_.evaluate(client, std::move(error));
  if (trust_.pinned() != pinned) forget();
  return meaning;
}

Async<void> RedfishConnections::stream(std::string path, std::string last_event_id,
                                       std::string token,
                                       std::function<Result<void>(std::string_view)> sink) {
  CO_TRY_OK(co_await ensureTrust());
  withheld_.addToken(token);
  CO_TRY(url, urlOfLink(base_url_, path));
  io::HttpRequest request{.url = url, .timeout = kEventSilence};
  request.headers = {{"Accept", "text/event-stream"},
                     {"Accept-Encoding", "identity"},
                     {"Cache-Control", "no-cache"},
                     {"OData-Version", "4.0"}};
  authorize(request.headers, token);
  if (!last_event_id.empty()) request.headers["Last-Event-ID"] = last_event_id;
  co_await rate_limiter_.next();
  auto client = takeClient(true);
  auto response = co_await client->fetch(std::move(request), std::move(sink));
  if (!response) co_return fail(evaluated(*client, std::move(response.error())));
  const auto reply = replyOf(*std::move(response));
  if (!reply.ok()) co_return fail(errorOf(reply, "GET " + path));
  co_return Result<void>();
}

std::unique_ptr<io::HttpClient> RedfishConnections::takeClient(bool fresh) {
  if (fresh || idle_.empty()) return trust_.makeClient();
  auto client = std::move(idle_.back());
  idle_.pop_back();
  return client;
}

}  // namespace muster::bmc
