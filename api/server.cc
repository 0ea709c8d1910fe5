// SPDX-License-Identifier: Apache-2.0
#include "api/server.h"

#include "api/dispatch.h"
#include "api/doors.h"
#include "api/event_hub.h"
#include "api/oidc/logins.h"
#include "api/page_session.h"
#include "api/static_files.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "app/site/leadership.h"
#include "app/site/service_user.h"
#include "app/site/site_keys.h"
#include "base/async/start.h"
#include "base/io/http_routes.h"
#include "base/io/process.h"
#include "base/io/side_thread.h"
#include "base/log.h"
#include "inventory/model/cluster.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <set>
#include <thread>

namespace muster::api {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kLookPeriod{1};  ///< at the store's tokens
/// Between looks at them for tokens that are not known.
constexpr std::chrono::milliseconds kExtraLookPeriod{100};
constexpr std::chrono::hours kCertificateLife{24 * 365};
constexpr std::size_t kMaxUnknownNames = 20;  ///< lines at once
constexpr std::size_t kMaxConnections = 4'096;
constexpr std::size_t kMaxConnectionsPerAddress = 2'048;  ///< or user: a page holds one for events
constexpr std::size_t kMaxQueryBytes = 4u << 10;          ///< of a body that a GET need not have
constexpr std::size_t kMaxBodiesBytes = 16u << 20;
constexpr unsigned kSocketMode = 0660;
constexpr std::size_t kMostBeside = 8;  ///< each takes seconds

std::optional<gid_t> socketGroup() {
  const auto* group = ::getgrnam(kViewerGroup);
  return group ? std::optional(group->gr_gid) : std::nullopt;
}

/// What follows the scheme; another scheme than Bearer is a token that does not count. Source: RFC
/// 6750, 2.1
io::Admission refuse(const io::ServerRequest& head, const Problem& problem) {
  return {0, toResponse(problem, requestIdOf(head))};
}

Problem tooManyBeside() {
  Problem out(503, "unavailable", "others ask for reports like this one already",
              "ask again in a few seconds");
  out.retryable = true;
  return out;
}

}  // namespace

std::filesystem::path defaultSocket(const app::Options& options) {
  const bool is_service = ::geteuid() == 0 || app::isServiceUser();
  if (options.state == kUsualState && is_service) return kUsualSocket;
  return (is_service ? options.runFolder("api") : options.state) / "api.sock";
}

struct ApiServer::State {
  app::Options options;
  ApiOptions api;
  std::vector<ApiRoute> routes = apiRoutes();
  std::unique_ptr<SiteReader> reader;
  asio::io_context io;
  Workers readers{1};       ///< one: a store's connection is one thread's
  Workers beside{1};        ///< of routes that take seconds
  std::size_t besides = 0;  ///< requests that it works on, or that wait for it
  std::shared_ptr<EventHub> hub;
  std::shared_ptr<const TokenTable> tokens = std::make_shared<const TokenTable>();
  std::shared_ptr<Doors> doors;  ///< who comes in from elsewhere, as the access file says now
  std::unique_ptr<Logins> logins;
  std::vector<std::unique_ptr<io::HttpServer>> servers;
  std::uint16_t port = 0;
  bool port_asks = false;               ///< for certificates
  std::string token_trouble;            ///< as it was said last
  std::set<std::string> unknown_names;  ///< as they were said last
  Steady::time_point extra_look_at{};
  std::atomic<Steady::rep> answered_at{Steady::now().time_since_epoch().count()};
  std::thread thread;

  Task<void> onReader(std::function<void(SiteReader&)> work);
  Task<void> refreshTokens();
  Task<void> refreshDoors();
  Task<void> sayUnknownNames();
  /// To the log, and to who has started the server.
  void notice(const std::string& text) const;
  void useDoors(std::shared_ptr<Doors> changed);
  Task<void> lookAtTokens();
  Task<void> lookForToken(io::ServerRequest head);
  Task<io::ServerResponse> handle(const ApiRoute& route, io::ServerRequest request);
  Task<io::ServerResponse> handleBeside(const ApiRoute& route, io::ServerRequest request);
  Task<io::ServerResponse> stream(const ApiRoute& route, io::ServerRequest request);
  Task<io::ServerResponse> unknown(io::ServerRequest request);
  std::expected<Caller, Problem> callerOf(const io::ServerRequest& head) const;
  io::Admission admit(const ApiRoute* route, const io::ServerRequest& head) const;
  Task<io::ServerResponse> session(io::ServerRequest request);
  Async<CreatedToken> logIn(LoginRequest login);
  Task<void> logOut(std::string secret, std::string by);
  std::vector<io::Route> ioRoutes();
  Result<void> listenOnSocket();
  Result<void> listenOnPort();
  void run();
};

Task<void> ApiServer::State::onReader(std::function<void(SiteReader&)> work) {
  std::function<bool()> job = [site = reader.get(), work = std::move(work)] {
    try {
      work(*site);
    } catch (const std::exception& e) {
      logText(LogLevel::Error, "api", e.what());
    }
    return true;
  };
  (void)co_await offload<bool>(readers, std::move(job));
}

void ApiServer::State::notice(const std::string& text) const {
  logWarning("api", "{}", text);
  if (api.notice) api.notice(text);
}

Task<void> ApiServer::State::refreshDoors() {
  auto found = std::make_shared<std::shared_ptr<Doors>>();
  std::function<void(SiteReader&)> look = [found](SiteReader& site) {
    *found = site.changedDoors();
  };
  co_await onReader(std::move(look));
  if (*found) useDoors(std::move(*found));
}

void ApiServer::State::useDoors(std::shared_ptr<Doors> changed) {
  const bool was_wrong = doors && !doors->problems().empty();
  doors = std::move(changed);
  for (const auto& problem : doors->problems())
    notice("whom it lets in: " + problem + "; whom that may be about is refused");
  if (was_wrong && doors->problems().empty())
    notice("whom it lets in: the access file is right now");
  if (doors->asksForCertificates() && port != 0 && !port_asks)
    logWarning("api",
               "the access file names an authority of clients now; the HTTPS port asks for "
               "certificates when muster server is started anew");
}

/// Each once for as long as it is so.
Task<void> ApiServer::State::sayUnknownNames() {
  auto found = std::make_shared<std::optional<std::vector<std::string>>>();
  std::function<void(SiteReader&)> look = [found](SiteReader& site) {
    *found = site.changedUnknownNames();
  };
  co_await onReader(std::move(look));
  if (!*found) co_return;
  std::size_t said = 0, unsaid = 0;
  for (const auto& line : **found) {
    if (unknown_names.contains(line)) continue;
    if (said >= kMaxUnknownNames) {
      ++unsaid;
      continue;
    }
    ++said;
    notice("whom it lets in: " + line);
  }
  if (unsaid > 0) notice(fmt::format("whom it lets in: {} further names that nobody has", unsaid));
  unknown_names = {(*found)->begin(), (*found)->end()};
}

Task<void> ApiServer::State::refreshTokens() {
  auto found = std::make_shared<Result<std::shared_ptr<const TokenTable>>>();
  std::function<void(SiteReader&)> look = [found](SiteReader& site) {
    site.reopenIfReplaced();
    *found = site.changedTokens();
  };
  co_await onReader(std::move(look));
  const auto failed = *found ? std::string() : found->error().str();
  if (failed != token_trouble && !failed.empty())
    logWarning("api", "the tokens could not be read: {}", failed);
  token_trouble = failed;  // once for each time that it is so
  if (*found && **found) tokens = std::move(**found);
}

/// Keeps the table of tokens as the store has it, and shows that both threads work.
Task<void> ApiServer::State::lookAtTokens() {
  asio::steady_timer timer(io);
  while (true) {
    co_await refreshTokens();
    co_await refreshDoors();
    co_await sayUnknownNames();
    answered_at = Steady::now().time_since_epoch().count();
    timer.expires_after(kLookPeriod);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

/// A token that is not known may have been made a moment ago, beside this process. Who guesses
/// gets one look of the store in kExtraLookPeriod for all guesses together.
Task<void> ApiServer::State::lookForToken(io::ServerRequest head) {
  const auto secret = shownToken(head);
  if (!secret.starts_with(kTokenPrefix) || tokens->find(secret, SystemClock().now())) co_return;
  const auto now = Steady::now();
  if (now < extra_look_at + kExtraLookPeriod) co_return;
  extra_look_at = now;
  co_await refreshTokens();
}

/// Who shows a token is known by that alone: one that does not count is no reason to take the
/// certificate's owner, or the socket's peer, for somebody. Errors: 401, 503
std::expected<Caller, Problem> ApiServer::State::callerOf(const io::ServerRequest& head) const {
  const auto now = SystemClock().now();
  if (const auto secret = shownToken(head); !secret.empty()) {
    if (const auto* token = tokens->find(secret, now)) return Caller{identityOf(*token)};
    return std::unexpected(unauthenticated("the token is unknown, over or revoked"));
  }
  if (head.shown_certificate && doors->asksForCertificates()) {
    TRY(who, doors->evaluate(*head.shown_certificate, now));
    return Caller{std::move(who)};
  }
  if (head.peer) return Caller{};
  return std::unexpected(unauthenticated("this request says not who asks"));
}

io::Admission ApiServer::State::admit(const ApiRoute* route, const io::ServerRequest& head) const {
  if (route && route->reach == Reach::Anybody) return {kMaxQueryBytes, std::nullopt};
  if (const auto caller = callerOf(head); !caller) return refuse(head, caller.error());
  if (const auto problem = refusedOrder(head)) return refuse(head, *problem);
  return {route && route->method != "GET" ? kMaxOrderBytes : kMaxQueryBytes, std::nullopt};
}

Task<io::ServerResponse> ApiServer::State::handle(const ApiRoute& route,
                                                  io::ServerRequest request) {
  const auto caller = callerOf(request).value_or(Caller{});
  auto response = std::make_shared<io::ServerResponse>();
  std::function<void(SiteReader&)> work = [response, &route, caller,
                                           request = std::move(request)](SiteReader& site) {
    *response = dispatch(route, site, request, caller);
  };
  co_await onReader(std::move(work));
  co_return std::move(*response);
}

/// Who may ask is looked up by the reader; the rest does not touch it.
Task<io::ServerResponse> ApiServer::State::handleBeside(const ApiRoute& route,
                                                        io::ServerRequest request) {
  const auto caller = callerOf(request).value_or(Caller{});
  const auto id = requestIdOf(request);
  auto call = std::make_shared<std::expected<Call, Problem>>();
  std::function<void(SiteReader&)> ask = [=, &route](SiteReader& site) {
    *call = authorize(route, site, request, caller, id);
  };
  co_await onReader(std::move(ask));
  auto response = std::make_shared<io::ServerResponse>();
  if (!*call || besides >= kMostBeside) {
    *response = respond(route, request,
                        std::unexpected(*call ? tooManyBeside() : std::move(*call).error()), id);
  } else {
    ++besides;
    std::function<bool()> work = [this, &route, request, call, response, id] {
      auto reply = guarded(request, [&] { return route.beside(options, **call); });
      *response = respond(route, request, std::move(reply), id);
      return true;
    };
    (void)co_await offload<bool>(beside, std::move(work));
    --besides;
  }
  std::function<void(SiteReader&)> note = [&route, response](SiteReader& site) {
    count(route, *response, site);
  };
  co_await onReader(std::move(note));
  co_return std::move(*response);
}

Task<io::ServerResponse> ApiServer::State::stream(const ApiRoute& route,
                                                  io::ServerRequest request) {
  const auto caller = callerOf(request).value_or(Caller{});
  const auto id = requestIdOf(request);
  auto call = std::make_shared<std::expected<Call, Problem>>();
  auto names = std::make_shared<std::set<std::string>>();  // of a scope
  std::function<void(SiteReader&)> ask = [=, &route](SiteReader& site) {
    *call = authorize(route, site, request, caller, id);
    const auto session = site.session();
    if (!*call || !session || (*call)->scope.isSite()) return;
    for (const auto& node : (*session)->cluster().nodes)
      if ((*call)->scope.has((*session)->cluster(), node)) names->insert(node.name.str());
  };
  co_await onReader(std::move(ask));
  if (!*call) co_return toResponse(call->error(), id);
  std::optional<std::int64_t> after;
  if (const auto text = (*call)->text("after"); !text.empty()) after = (*call)->integer("after", 0);
  if (const auto last = request.headers.find("Last-Event-ID"); last != request.headers.end()) {
    std::int64_t sequence = 0;
    const auto* end = last->second.data() + last->second.size();
    const auto read = std::from_chars(last->second.data(), end, sequence);
    if (read.ec == std::errc() && read.ptr == end && sequence >= 0) after = sequence;
  }
  std::function<bool(const std::string&)> wanted;
  const auto subject = (*call)->text("subject");
  const bool all = (*call)->scope.isSite();
  if (!all || !subject.empty())
    wanted = [all, subject, names](const std::string& of) {
      return (all || names->contains(of)) && (subject.empty() || of == subject);
    };
  std::function<bool()> may_go_on;
  if (caller.known)  // asked with each heartbeat: revoked or over
    may_go_on = [this, head = std::move(request)] { return callerOf(head).has_value(); };
  ++reader->counters().streams;
  const std::shared_ptr<void> counted(nullptr,
                                      [site = reader.get()](void*) { --site->counters().streams; });
  auto next = hub->subscribe(after, std::move(wanted), std::move(may_go_on));
  auto response = io::ServerResponse::stream(
      {"text/event-stream", [next = std::move(next), counted] { return next(); }});
  response.headers["Cache-Control"] = "no-cache";
  response.headers["X-Request-Id"] = id;
  co_return response;
}

/// Begins and ends what a browser is known by. Who is known by a socket needs none.
Task<io::ServerResponse> ApiServer::State::session(io::ServerRequest request) {
  const auto id = requestIdOf(request);
  const auto caller = callerOf(request).value_or(Caller{});
  if (request.method == "DELETE") {
    if (caller.known && caller.known->way == Way::Oidc)
      co_await logOut(std::string(shownToken(request)),
                      fmt::format("{} (API, {}, request {})", caller.known->principal,
                                  request.remote_address, id));
    co_return sessionEnded();
  }
  if (!caller.known || shownToken(request).empty())
    co_return toResponse({400, "invalid-input", "a session begins with a token",
                          "send Authorization: Bearer TOKEN (muster token create)"},
                         id);
  co_return sessionBegun(shownToken(request), caller.known->expires_at, SystemClock().now());
}

/// The token counts when it is answered.
Async<CreatedToken> ApiServer::State::logIn(LoginRequest login) {
  auto made = std::make_shared<std::optional<Result<CreatedToken>>>();
  std::function<void(SiteReader&)> work = [made, login = std::move(login)](SiteReader& site) {
    *made = Tokens(site.store()).logIn(login, site.now());
  };
  co_await onReader(std::move(work));
  if (!*made) co_return fail(ErrorCode::Internal, "the login could not be kept");
  co_await refreshTokens();
  co_return std::move(**made);
}

/// A login ends for everybody who has its token, and not in this browser alone.
Task<void> ApiServer::State::logOut(std::string secret, std::string by) {
  std::function<void(SiteReader&)> work = [secret, by](SiteReader& site) {
    if (const auto ended = Tokens(site.store()).logOut(secret, by, site.now()); !ended)
      logWarning("api", "{} could not log out: {}", by, ended.error().str());
  };
  co_await onReader(std::move(work));
  co_await refreshTokens();
}

Task<io::ServerResponse> ApiServer::State::unknown(io::ServerRequest request) {
  const auto path = request.path();
  std::string allowed;
  for (const auto& route : ioRoutes())
    if (std::map<std::string, std::string> ignored; route.path.starts_with(kBasePath) &&
                                                    !route.path.ends_with('/') &&
                                                    io::matchesTemplate(route.path, path, ignored))
      allowed += (allowed.empty() ? "" : ", ") + route.method;
  const auto id = requestIdOf(request);
  if (allowed.empty())
    co_return toResponse(
        {404, "unknown-resource", "there is no such resource", "see /openapi.json"}, id);
  auto response = toResponse(
      {405, "method-not-allowed", fmt::format("{} is not for this resource", request.method),
       "it knows: " + allowed},
      id);
  response.headers["Allow"] = allowed;
  co_return response;
}

std::vector<io::Route> ApiServer::State::ioRoutes() {
  std::vector<io::Route> out;
  const auto fresh_tokens = [this](io::ServerRequest head) {
    return lookForToken(std::move(head));
  };
  for (const auto& route : routes) {
    const bool at_root = route.reach == Reach::Anybody || route.path == "/metrics";
    out.push_back({std::string(route.method), (at_root ? "" : std::string(kBasePath)) + route.path,
                   [this, &route](io::ServerRequest request) {
                     if (route.is_stream) return stream(route, std::move(request));
                     return route.beside ? handleBeside(route, std::move(request))
                                         : handle(route, std::move(request));
                   },
                   [this, &route](const io::ServerRequest& head) { return admit(&route, head); },
                   fresh_tokens});
  }
  for (const auto* method : {"POST", "DELETE"})
    out.push_back({std::string(method), std::string(kBasePath) + std::string(kSessionPath),
                   [this](io::ServerRequest request) { return session(std::move(request)); },
                   [this](const io::ServerRequest& head) { return admit(nullptr, head); },
                   fresh_tokens});
  for (auto& route : logins->routes()) out.push_back(std::move(route));
  out.push_back({"*", std::string(kBasePath) + "/",
                 [this](io::ServerRequest request) { return unknown(std::move(request)); },
                 [this](const io::ServerRequest& head) { return admit(nullptr, head); }});
  out.push_back(
      {"GET", "/",
       [](io::ServerRequest request) -> Task<io::ServerResponse> { co_return staticFile(request); },
       [](const io::ServerRequest&) { return io::Admission{kMaxQueryBytes, {}}; }});
  return out;
}

namespace {

io::ServerOptions serverOptions() {
  io::ServerOptions out;
  out.max_body_bytes = kMaxOrderBytes;
  out.max_bodies_bytes = kMaxBodiesBytes;
  out.max_connections = kMaxConnections;
  out.max_connections_per_address = kMaxConnectionsPerAddress;
  out.refusal = [](int status, std::string_view reason) {
    return toResponse(refusalOf(status, reason), newRequestId());
  };
  return out;
}

struct ListenEndpoint {
  std::string address;
  std::uint16_t port = 0;
};

/// "10.20.0.1:9443", "[::]:9443"; port 0: any free one.
Result<ListenEndpoint> listenEndpoint(std::string_view text) {
  ListenEndpoint out;
  const auto colon = text.rfind(':');
  const auto digits = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  auto address = text.substr(0, colon);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  out.address = std::string(address);
  if (error != std::errc() || end != digits.data() + digits.size() || address.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is not where to listen; write ADDRESS:PORT", text));
  return out;
}

}  // namespace

namespace {

/// Errors: InvalidInput
Result<void> checkAnnounced(const ApiOptions& api) {
  if (api.announce.empty()) return {};
  if (api.listen.empty())
    return fail(ErrorCode::InvalidInput,
                "--announce says where others reach the HTTPS port of --listen, and there is none");
  const auto url = io::Url::parse(api.announce);
  if (!url || url->scheme != "https" || url->target != "/" || api.announce.contains('@'))
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is no URL of a server; write https://HOST:PORT", api.announce));
  return {};
}

/// Whether this host has the address now; what is no plain IPv4 address is not looked for.
bool isHere(const std::string& address) {
  const auto wanted = Ipv4::parse(address);
  if (!wanted || wanted->value() == 0 || address.starts_with("127.")) return true;
  return std::ranges::any_of(app::addressesOfHost(),
                             [&address](const auto& own) { return own.str() == address; });
}

}  // namespace

Result<void> ApiServer::State::listenOnSocket() {
  auto server = serverOptions();
  server.unix_socket = io::UnixSocketOptions{api.socket, kSocketMode, std::nullopt};
  if (::geteuid() == 0 || app::isServiceUser()) server.unix_socket->group = socketGroup();
  TRY(started, io::startHttpServer(io.get_executor(), std::move(server)));
  started->addRoutes(ioRoutes());
  servers.push_back(std::move(started));
  return {};
}

Result<void> ApiServer::State::listenOnPort() {
  TRY(endpoint, listenEndpoint(api.listen));
  auto server = serverOptions();
  server.address = endpoint.address;
  server.port = endpoint.port;
  std::vector<std::string> names{app::hostName(), "localhost", "127.0.0.1", endpoint.address};
  for (const auto& address : app::addressesOfHost()) names.push_back(address.str());
  TRY(keys, app::Keys::loadOrCreate(options.state));
  TRY(identity, keys.ca.issueServer(names, kCertificateLife));
  server.identity = std::move(identity);
  port_asks = doors->asksForCertificates();
  server.takes_any_client_certificate = port_asks;
  server.client_ca_pem = doors->caPem();
  TRY(started, io::startHttpServer(io.get_executor(), std::move(server)));
  started->addRoutes(ioRoutes());
  port = started->port();
  servers.push_back(std::move(started));
  // Where hosts may bind what they have not (net.ipv4.ip_nonlocal_bind) nobody else says it.
  if (!isHere(endpoint.address))
    notice(
        fmt::format("no interface of this host has {}: nobody reaches the HTTPS port until one "
                    "has (ip -br address)",
                    endpoint.address));
  return {};
}

void ApiServer::State::run() {
  while (true) {
    try {
      io.run();
      return;
    } catch (const std::exception& e) {
      logText(LogLevel::Error, "api", std::string("goes on after: ") + e.what());
    }
  }
}

Result<std::unique_ptr<ApiServer>> ApiServer::start(const app::Options& options,
                                                    const ApiOptions& api) {
  io::raiseDescriptorLimit(2 * kMaxConnections);
  auto state = std::make_unique<State>();
  state->options = options;
  state->api = api;
  if (state->api.socket.empty()) state->api.socket = defaultSocket(options);
  if (state->api.access_file.empty()) state->api.access_file = kAccessFile;
  TRY_OK(checkAnnounced(api));
  TRY(reader, SiteReader::open(options, state->api.access_file));
  state->reader = std::move(reader);
  auto* self = state.get();
  io::SideThread::startFor(state->io);
  state->hub = std::make_shared<EventHub>(
      state->io.get_executor(),
      [self](std::function<void(SiteReader&)> work) { return self->onReader(std::move(work)); });
  state->useDoors(state->reader->changedDoors());
  LoginHooks hooks;
  hooks.doors = [self] { return self->doors; };
  hooks.log_in = [self](LoginRequest login) { return self->logIn(std::move(login)); };
  state->logins = std::make_unique<Logins>(std::move(hooks));
  TRY_OK(state->listenOnSocket());
  if (!api.listen.empty()) TRY_OK(state->listenOnPort());
  const async::Ended ended = [](const std::exception_ptr& thrown) {
    if (thrown) logText(LogLevel::Error, "api", "a background task of the API has ended");
  };
  async::start(state->io, state->lookAtTokens(), ended);
  async::start(state->io, state->hub->run(), ended);
  state->thread = std::thread([self] { self->run(); });
  logInfo("api", "answers on {}{}", state->api.socket.string(),
          state->port ? fmt::format(" and https port {}", state->port) : std::string());
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(state)));
}

ApiServer::ApiServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

ApiServer::~ApiServer() { stop(); }

const std::filesystem::path& ApiServer::socket() const { return state_->api.socket; }
std::uint16_t ApiServer::port() const { return state_->port; }

std::string ApiServer::url() const {
  if (!state_->api.announce.empty() || state_->port == 0) return state_->api.announce;
  auto host = state_->api.listen.substr(0, state_->api.listen.rfind(':'));
  if (host.starts_with("127.") || host == "localhost" || host == "[::1]") return {};
  if (host == "0.0.0.0" || host == "[::]") host = app::hostName();
  return fmt::format("https://{}:{}", host, state_->port);
}

void ApiServer::reload() { state_->reader->reload(); }

bool ApiServer::answered(std::chrono::seconds within) const {
  const Steady::time_point at{Steady::duration(state_->answered_at.load())};
  return Steady::now() - at <= within;
}

void ApiServer::stop() {
  if (!state_->thread.joinable()) return;
  state_->io.stop();
  state_->thread.join();
  state_->servers.clear();
}

}  // namespace muster::api
