// SPDX-License-Identifier: Apache-2.0
#include "api/dispatch.h"

#include "api/request_headers.h"
#include "api/serving_host.h"
#include "app/site/actor.h"
#include "base/io/crypto.h"
#include "base/io/gzip.h"
#include "base/json_output.h"
#include "base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace muster::api {
namespace {

constexpr std::size_t kMaxRequestIdBytes = 64;
constexpr std::size_t kRequestIdBytes = 8;
constexpr std::size_t kSmallestGzipBytes = 4u << 10;
constexpr std::size_t kEtagDigits = 24;

std::expected<Identity, Problem> identityOf(SiteReader& reader, const io::ServerRequest& request,
                                            const Caller& caller) {
  if (caller.known) return *caller.known;
  if (!request.peer) return std::unexpected(unauthenticated("this request says not who asks"));
  const auto known = reader.identify(*request.peer);
  if (!known)
    return std::unexpected(Problem(503, "unavailable",
                                   "who may do what cannot be read: " + known.error().str(),
                                   "ask root of this host to correct the access file"));
  if (*known) return **known;
  return std::unexpected(unauthenticated(
      fmt::format("the user with uid {} is neither in {} nor a member of the group {}",
                  request.peer->uid, reader.accessFile().string(), kViewerGroup)));
}

std::string actorOf(const Identity& who, const io::ServerRequest& request, const std::string& id) {
  return fmt::format(
      "{}{} (API, {}, request {})", who.principal,
      who.way == Way::UnixSocket ? "@" + app::hostName() : std::string(),
      who.way == Way::UnixSocket ? std::string("Unix socket") : request.remote_address, id);
}

std::expected<void, Problem> mayAsk(const ApiRoute& route, const Identity& who) {
  if (!may(who.role, route.verb))
    return std::unexpected(
        denied(fmt::format("{} ({}) may not: {} (verb {})", who.principal, toString(who.role),
                           route.summary, toString(route.verb)),
               rolesThatMay(route.verb)));
  if (route.reach == Reach::Site && !who.scope.isSite())
    return std::unexpected(
        denied(fmt::format("{} may act on a part of the site alone ({}), and {} {} is about the "
                           "whole site",
                           who.principal, scopeText(who.scope), route.method, route.path),
               {}));
  return {};
}

bool isJson(std::string_view content_type) {
  const auto type = content_type.substr(0, content_type.find_first_of("; "));
  return io::CaseLess()(std::string(type), "application/json") ==
         io::CaseLess()("application/json", std::string(type));
}

bool matches(std::string_view if_none_match, std::string_view etag) {
  return if_none_match == "*" || if_none_match.find(etag) != std::string_view::npos;
}

/// What an answer says, without the time at which it was made.
std::string bodyText(const Answer& answer) {
  return answer.plain ? *answer.plain : jsonText(answer.body);
}

std::string etagOf(std::string_view text) {
  return fmt::format("W/\"{}\"", io::sha256Hex(text).substr(0, kEtagDigits));
}

/// An order that was meant for the resource as its author has seen it. Compared as text: the ETags
/// are weak because compressed and plain answers share them.
std::expected<void, Problem> checkUnchanged(const ApiRoute& route, SiteReader& reader,
                                            const io::ServerRequest& request, const Call& call) {
  const auto if_match = headerOf(request, "If-Match");
  if (if_match.empty() || route.method == "GET") return {};
  if (!route.resource)
    return std::unexpected(Problem(400, "invalid-input",
                                   "this order changes no resource that has "
                                   "an ETag",
                                   "leave out If-Match"));
  auto look = call;
  look.query.clear();
  look.body = nullptr;
  TRY(now, route.resource(reader, look));
  if (matches(if_match, etagOf(bodyText(now)))) return {};
  return std::unexpected(Problem(412, "conflict",
                                 "what this order is about has changed since it was looked at",
                                 "look again, and ask again with the new ETag"));
}

Problem unknownOutcome(IdempotentOrders::Known known) {
  if (known == IdempotentOrders::Known::Answered)
    return Problem(409, "conflict",
                   "this order was done under its Idempotency-Key, and its answer was not kept",
                   "look at what it was about; an order that is meant anew has a new key");
  return Problem(409, "outcome-unknown",
                 "an order with this Idempotency-Key was begun, and its server ended before it "
                 "answered: it was done, or it was not, and it is not done again",
                 "look at what it was about, and where it was not done give it with a new key");
}

Reply actOnce(const ApiRoute& route, SiteReader& reader, const io::ServerRequest& request,
              const Call& call) {
  const std::string key(headerOf(request, "Idempotency-Key"));
  if (key.empty() || route.method == "GET") {
    TRY_OK(checkUnchanged(route, reader, request, call));
    return route.act(reader, call);
  }
  IdempotentOrders orders(reader.store());
  const IdempotentOrder order{call.identity.principal, key,
                              fmt::format("{} {} {}", route.method, request.target, request.body)};
  TRY(before, orders.begin(order, reader.now()));
  using Known = IdempotentOrders::Known;
  if (before.known == Known::Answered && before.answer)
    return route.again ? route.again(reader, call, *std::move(before.answer))
                       : Reply(*std::move(before.answer));
  const bool may_be_done =
      before.known == Known::No || (before.known == Known::Begun && route.knows_its_key);
  if (!may_be_done) return std::unexpected(unknownOutcome(before.known));
  auto reply = [&]() -> Reply {
    TRY_OK(checkUnchanged(route, reader, request, call));
    return route.act(reader, call);
  }();
  // Whether an answer could be noted changes nothing of what was done.
  const auto noted = reply ? orders.remember(order, *reply, reader.now()) : orders.forget(order);
  if (!noted) logWarning("api", "order {}: {}", key, noted.error().str());
  return reply;
}

}  // namespace

namespace {

void speakOfMembers(Problem& problem, const ApiRoute& route) {
  std::vector<std::string_view> members;
  for (const auto* fields : {&route.body, &route.query})
    for (const auto& field : *fields) members.push_back(field.name);
  problem.detail = inMembers(problem.detail, members);
  problem.what_to_do = inMembers(problem.what_to_do, members);
}

}  // namespace

std::string requestIdOf(const io::ServerRequest& request) {
  std::string given(headerOf(request, "X-Request-Id"));
  const bool clean =
      !given.empty() && given.size() <= kMaxRequestIdBytes &&
      std::ranges::all_of(given, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
      });
  return clean ? given : newRequestId();
}

std::string newRequestId() { return io::toHex(io::randomBytes(kRequestIdBytes)); }

std::expected<Call, Problem> authorize(const ApiRoute& route, SiteReader& reader,
                                       const io::ServerRequest& request, const Caller& caller,
                                       const std::string& request_id) {
  Call call;
  call.request_id = request_id;
  if (route.reach != Reach::Anybody) {
    TRY(who, identityOf(reader, request, caller));
    call.identity = std::move(who);
    TRY_OK(mayAsk(route, call.identity));
    TRY(scope, ScopeFilter::make(call.identity.scope));
    call.scope = std::move(scope);
    call.actor = actorOf(call.identity, request, request_id);
    call.address = request.peer ? app::hostName() : request.remote_address;
    call.idempotency_key = headerOf(request, "Idempotency-Key");
  }
  call.path = request.path_parameters;
  TRY_OK(checkGivenOnce(request.target));
  call.query = io::queryOf(request.target);
  TRY_OK(checkQuery(route, call.query));
  if (route.method == "GET") return call;
  if (!request.body.empty() && !isJson(headerOf(request, "Content-Type")))
    return std::unexpected(
        Problem(415, "invalid-input", "an order is JSON", "send Content-Type: application/json"));
  TRY(body, checkBody(route, request.body));
  call.body = std::move(body);
  return call;
}

io::ServerResponse dispatch(const ApiRoute& route, SiteReader& reader,
                            const io::ServerRequest& request, const Caller& caller) {
  const auto id = requestIdOf(request);
  auto reply = guarded(request, [&]() -> Reply {
    TRY(call, authorize(route, reader, request, caller, id));
    if (route.needs_serving_host) TRY_OK(requireServingHost(reader));
    auto acted = actOnce(route, reader, request, call);
    if (route.method != "GET") reader.expireFleet();
    return acted;
  });
  auto response = respond(route, request, std::move(reply), id);
  count(route, response, reader);
  return response;
}

Reply guarded(const io::ServerRequest& request, const std::function<Reply()>& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    logWarning("api", "{} {}: {}", request.method, request.target, e.what());
    return std::unexpected(Problem(500, "internal", "this request met a mistake of muster's",
                                   "report it with the request id"));
  }
}

io::ServerResponse respond(const ApiRoute& route, const io::ServerRequest& request, Reply reply,
                           const std::string& id) {
  if (!reply) speakOfMembers(reply.error(), route);
  auto response = reply ? encode(request, std::move(*reply), id) : toResponse(reply.error(), id);
  response.headers["X-Request-Id"] = id;
  return response;
}

void count(const ApiRoute& route, const io::ServerResponse& response, SiteReader& reader) {
  ++reader.counters().answered[{std::string(route.method) + " " + route.path, response.status}];
}

io::ServerResponse encode(const io::ServerRequest& request, Answer answer,
                          const std::string& request_id) {
  io::ServerResponse out;
  out.status = answer.status;
  out.headers = std::move(answer.headers);
  out.headers["X-Request-Id"] = request_id;
  out.headers["X-Content-Type-Options"] = "nosniff";
  out.headers.try_emplace("Cache-Control", "no-cache");
  if (answer.status == 204) return out;
  auto text = bodyText(answer);
  if (!answer.plain) out.headers["Content-Type"] = "application/json";
  if (answer.as_of) out.headers["Muster-As-Of"] = muster::toString(*answer.as_of);  // of a 304 too
  if (answer.status == 200 && (request.method == "GET" || request.method == "HEAD")) {
    const auto etag = etagOf(text);
    out.headers["ETag"] = etag;
    if (matches(headerOf(request, "If-None-Match"), etag)) {
      out.status = 304;
      out.headers.erase("Content-Type");
      return out;
    }
  }
  // Behind the ETag: the same fleet a second later is the same answer.
  if (answer.as_of && text.ends_with('}')) {
    text.pop_back();
    text += fmt::format(",\"as_of\":\"{}\"}}", muster::toString(*answer.as_of));
  }
  if (!answer.plain) text += '\n';
  out.headers["Vary"] = "Accept-Encoding";
  if (text.size() >= kSmallestGzipBytes && io::acceptsGzip(headerOf(request, "Accept-Encoding")))
    if (auto packed = io::gzip(text)) {
      text = *std::move(packed);
      out.headers["Content-Encoding"] = "gzip";
    }
  out.body = std::move(text);
  return out;
}

}  // namespace muster::api
