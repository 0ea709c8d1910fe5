// SPDX-License-Identifier: Apache-2.0
// HTTP(S) server on Beast: one coroutine a connection, routes by longest path, files sent in
// bounded pieces.
//
// Whoever connects may be anybody. Until a route has admitted a request by its head, it costs a
// bounded head and one place in the table of connections; then a body of the length that the route
// allows this caller, within the server's budget (docs/adr/0161).
#include "base/io/connection_table.h"
#include "base/io/http_reader.h"
#include "base/io/http_reply.h"
#include "base/io/http_routes.h"
#include "base/io/listen_problem.h"
#include "base/io/peer_credentials.h"
#include "base/io/server_tls.h"

#include <fmt/format.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <algorithm>
#include <csignal>

namespace muster::io {

namespace {

constexpr std::chrono::seconds kFarewellLimit{20};  ///< TLS's goodbye
constexpr std::chrono::seconds kHandlerLimit{
    600};  ///< longest long-poll or upload that a handler may work on
constexpr std::chrono::milliseconds kAcceptPause{
    100};  ///< after an error of accept (out of descriptors)
constexpr std::chrono::seconds kRefusalReportInterval{60};
constexpr std::size_t kReservedDescriptors =
    256;  ///< for all else that the process opens; at least half of a small limit
constexpr int kBacklog = 1024;

struct Session : std::enable_shared_from_this<Session> {
  using Table = ConnectionTable<Session>;

  explicit Session(tcp::socket socket)
      : connection(std::make_shared<Connection>(std::move(socket))),
        handler_limit(connection->stream.get_executor(), [this] { callOff(); }) {}

  /// A handler that works for longer is called off, and its connection with it.
  void callOff() {
    const auto self = shared_from_this();
    if (ended) return;
    logText(LogLevel::Error, "http", "a handler took too long; it was called off");
    cancel.emit(asio::cancellation_type::terminal);
  }

  std::shared_ptr<Connection> connection;
  Deadline handler_limit;
  asio::cancellation_signal cancel;
  bool ended = false;
  std::string remote_address;
  TlsPeer client;
  std::shared_ptr<const ShownCertificate> shown;
  std::optional<PeerCredentials> peer;  ///< of a Unix socket
  std::optional<Table::Ticket> ticket;  ///< none: it was given up, or has ended
};

/// What the accept loop, the sessions and the server object share.
struct State {
  ServerOptions options;
  std::shared_ptr<asio::ssl::context> tls;
  tcp::acceptor acceptor;
  std::optional<UnixListener> unix_listener;
  Routes routes;
  Session::Table sessions;
  std::shared_ptr<BodyBudget> bodies;
  std::uint64_t dropped = 0, refused = 0, refused_reported = 0;
  std::chrono::steady_clock::time_point report_at{};
  bool stopped = false;

  explicit State(const asio::any_io_executor& executor) : acceptor(executor) {}
  void use(Session& session, ConnectionUse use) {
    if (session.ticket) sessions.use(*session.ticket, use);
  }
  void forget(Session& session) {
    if (const auto ticket = std::exchange(session.ticket, std::nullopt)) sessions.remove(*ticket);
  }
};
using Shared = std::shared_ptr<State>;

Task<ServerResponse> callHandler(std::shared_ptr<const Route> route, ServerRequest request) {
  std::string problem;
  try {
    co_return co_await route->handle(std::move(request));
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) throw;
    problem = e.what();
  } catch (const std::exception& e) {
    problem = e.what();
  }
  logText(LogLevel::Error, "http", "a handler threw: " + problem);
  co_return ServerResponse::text(500, "internal error\n");
}

// ---- sessions

ServerRequest requestOf(const Session& session, const RequestParser& parser) {
  const auto& message = parser.get();
  ServerRequest request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  request.headers = headersOf(message);
  request.remote_address = session.remote_address;
  request.client_common_name = session.client.common_name;
  request.expired_client_common_name = session.client.expired_common_name;
  request.client_key_id = session.client.key_id;
  request.shown_certificate = session.shown;
  request.peer = session.peer;
  return request;
}

ServerResponse refusalOf(const State& state, int status, std::string_view reason) {
  if (state.options.refusal) return state.options.refusal(status, reason);
  return ServerResponse::text(status, std::string(reason) + "\n");
}

/// Who is asked for, and may they ask? All of it from the head; nothing of the body has been read.
Admission admit(const State& state, const Routes::Match& match, const ServerRequest& head) {
  if (!match.route) {
    auto refusal = refusalOf(state, match.path_known ? 405 : 404,
                             match.path_known ? "method not allowed" : "not found");
    return {0, std::move(refusal)};
  }
  if (match.route->admit) return match.route->admit(head);
  return {state.options.max_body_bytes, std::nullopt};
}

/// Answers a request that is not worked on. What is left of its body is not read as the next
/// request: the connection ends.
Task<void> refuse(Shared state, std::shared_ptr<Session> session, ServerResponse answer,
                  bool head_only) {
  Reply reply{session->connection, state->options.idle_timeout, state->options.min_answer_rate,
              false, head_only};
  if (!co_await writeReply(&reply, std::move(answer))) co_await discardInput(session->connection);
}

ServerResponse answerTo(const State& state, const HeadRefusal& refusal) {
  auto answer = refusalOf(state, refusal.status, refusal.reason);
  if (refusal.status == 503) answer.headers["Retry-After"] = "5";
  return answer;
}

/// One request after the other. False: the connection cannot be used any more.
Task<bool> serveOne(Shared state, std::shared_ptr<Session> session) {
  const auto connection = session->connection;
  const auto& options = state->options;
  const ReadLimits limits{options.idle_timeout, options.head_timeout, options.body_timeout,
                          options.min_body_rate};
  RequestParser parser;
  state->use(*session, ConnectionUse::Waiting);
  const auto unread = co_await readHead(connection, &parser, limits);
  if (unread.refusal) co_await refuse(state, session, answerTo(*state, unread.refusal), false);
  if (unread) co_return false;

  auto request = requestOf(*session, parser);
  auto match = state->routes.find(request.method, request.path());
  request.path_parameters = std::move(match.parameters);
  if (match.route && match.route->before_admit) {
    session->handler_limit.set(kHandlerLimit);
    co_await match.route->before_admit(request);
    session->handler_limit.lift();
  }
  auto admission = admit(*state, match, request);
  const bool head_only = request.method == "HEAD", has_body = !parser.is_done();
  const auto declared = parser.content_length();
  if (!admission.refusal && declared && *declared > admission.max_body_bytes)
    admission.refusal = refusalOf(*state, 413, "the body is too long");
  if (admission.refusal && has_body) {
    co_await refuse(state, session, *std::move(admission.refusal), head_only);
    co_return false;
  }
  if (has_body) {
    parser.body_limit(admission.max_body_bytes);
    auto& body = parser.get().body();
    body.budget = state->bodies;
    body.client =
        request.client_common_name.empty() ? request.remote_address : request.client_common_name;
    const auto cut = co_await readBody(connection, &parser, limits);
    if (cut.refusal) co_await refuse(state, session, answerTo(*state, cut.refusal), head_only);
    if (cut) co_return false;
  }
  Reply reply{connection, options.idle_timeout,       options.min_answer_rate, parser.keep_alive(),
              head_only,  parser.get().version() < 11};
  auto& body = parser.get().body();
  request.body = std::move(body.bytes);
  request.charge = std::move(body.charge);
  if (const auto range = request.headers.find("Range");
      range != request.headers.end() && !request.headers.contains("If-Range")) {
    reply.range = range->second;
  }
  state->use(*session, session->client.common_name.empty() ? ConnectionUse::Answering
                                                           : ConnectionUse::Serving);
  ServerResponse response;
  if (admission.refusal) {
    response = *std::move(admission.refusal);
  } else {
    connection->lift();
    session->handler_limit.set(kHandlerLimit);
    response = co_await callHandler(match.route, std::move(request));
    session->handler_limit.lift();
  }
  reply.began = std::chrono::steady_clock::now();
  const auto failed = co_await writeReply(&reply, std::move(response));
  co_return !failed && reply.keep_alive;
}

Task<void> farewell(std::shared_ptr<Connection> connection) {
  error_code error;
  if (connection->stream.socket().is_open() && connection->stream.tls()) {
    connection->arm(kFarewellLimit);
    co_await connection->stream.tls()->async_shutdown(
        asio::redirect_error(asio::use_awaitable, error));
  }
  connection->stream.socket().shutdown(tcp::socket::shutdown_both, error);
  connection->close();
}

Task<void> runSession(Shared state, std::shared_ptr<Session> session) {
  const auto connection = session->connection;
  if (state->tls) {
    connection->keep = state->tls;
    connection->stream.startTls(*state->tls);
    connection->arm(state->options.handshake_timeout);
    error_code error;
    co_await connection->stream.tls()->async_handshake(
        TlsStream::Side::Server, asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      logDebug("http", "TLS with {}: {}", session->remote_address, error.message());
      co_return;
    }
    session->client = clientOf(*connection->stream.tls());
    if (state->options.takes_any_client_certificate)
      session->shown = shownBy(*connection->stream.tls());
  }
  while (!state->stopped && co_await serveOne(state, session)) {
  }
  state->use(*session, ConnectionUse::Waiting);
  co_await farewell(connection);
}

/// Who is at the other end: clients of a Unix socket count by their user.
struct Remote {
  std::string address;
  std::optional<PeerCredentials> peer;
};

Remote remoteOf(const State& state, tcp::socket& socket) {
  error_code error;
  if (!state.unix_listener) return {socket.remote_endpoint(error).address().to_string(), {}};
  auto peer = peerCredentials(socket.native_handle());
  if (!peer) return {"unix", {}};
  return {fmt::format("unix uid {}", peer->uid), *std::move(peer)};
}

void startSession(const Shared& state, tcp::socket socket, Remote remote) {
  error_code error;
  socket.set_option(tcp::no_delay(true), error);  // a Unix socket has no such option
  auto session = std::make_shared<Session>(std::move(socket));
  session->remote_address = std::move(remote.address);
  session->peer = std::move(remote.peer);
  session->ticket = state->sessions.add(session->remote_address, session);
  auto ended = [state, session](const std::exception_ptr&) {
    session->ended = true;
    session->handler_limit.stop();
    session->connection->close();
    state->forget(*session);
  };
  asio::co_spawn(state->acceptor.get_executor(), runSession(state, session),
                 asio::bind_cancellation_slot(session->cancel.slot(), std::move(ended)));
}

// ---- connections

void drop(State& state, Session& session) {
  ++state.dropped;
  session.connection->close();
  state.forget(session);
}

/// Makes room for a connection of this address, at the cost of whoever holds most. False: there is
/// none.
bool makeRoom(State& state, const std::string& address) {
  std::shared_ptr<Session> victim;
  if (state.sessions.countOf(address) >= state.options.max_connections_per_address) {
    victim = state.sessions.longestWaitingOf(address);
    if (!victim) return false;
  } else if (state.sessions.size() >= state.options.max_connections) {
    victim = state.sessions.victimFor(address);
    if (!victim) return false;
  }
  if (victim) drop(state, *victim);
  return true;
}

/// Now and then: a line for each would be as many as the caller likes.
void reportRefusals(State& state) {
  const auto now = std::chrono::steady_clock::now();
  const auto gone = state.dropped + state.refused;
  if (now < state.report_at || gone == state.refused_reported) return;
  state.report_at = now + kRefusalReportInterval;
  state.refused_reported = gone;
  logWarning("http",
             "{} connections are open on port {}; since the start {} waiting ones were closed for "
             "others and {} new ones refused",
             state.sessions.size(), state.options.port, state.dropped, state.refused);
}

Task<void> pause(std::chrono::milliseconds duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor, duration);
  co_await timer.async_wait(asio::use_awaitable);
}

Task<void> acceptLoop(Shared state) {
  bool failing = false;  // said once for each time that it is so: a storm would drown the log
  while (!state->stopped) {
    error_code error;
    auto socket =
        co_await state->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (state->stopped) co_return;
    if (error) {
      if (!std::exchange(failing, true))
        logWarning("http", "no more connections can be taken now: {}", error.message());
      if (const auto victim = state->sessions.victimFor({});
          victim && error == asio::error::no_descriptors)
        drop(*state, *victim);
      co_await pause(kAcceptPause);
      continue;
    }
    failing = false;
    auto remote = remoteOf(*state, socket);
    const auto changed = state->dropped;
    if (makeRoom(*state, remote.address)) {
      startSession(state, std::move(socket), std::move(remote));
    } else {
      ++state->refused;
    }
    if (changed != state->dropped || state->refused > 0) reportRefusals(*state);
  }
}

class BeastServer final : public HttpServer {
 public:
  explicit BeastServer(Shared state)
      : state_(std::move(state)),
        port_(state_->unix_listener ? 0 : state_->acceptor.local_endpoint().port()) {}
  ~BeastServer() override { stop(); }

  std::uint16_t port() const override { return port_; }
  void addRoutes(std::vector<Route> routes) override { state_->routes.add(std::move(routes)); }
  ServerLoad load() const override {
    return {state_->sessions.size(), state_->bodies->used(), state_->dropped, state_->refused};
  }
  void stop() override {
    if (std::exchange(state_->stopped, true)) return;
    error_code ignored;
    state_->acceptor.close(ignored);
    state_->unix_listener.reset();
    state_->sessions.each([this](const std::shared_ptr<Session>& session) {
      session->connection->close();
      // From inside the executor: elsewhere Asio 1.81 queues the cancellation with a bare pointer
      // to the coroutine, which may have ended by then.
      asio::post(state_->acceptor.get_executor(), [session] {
        if (!session->ended) session->cancel.emit(asio::cancellation_type::terminal);
      });
    });
  }

 private:
  Shared state_;
  std::uint16_t port_;
};

/// As many as the process may open, less what all else needs.
std::size_t withinDescriptors(std::size_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return connections;
  const auto reserve = std::min<std::size_t>(kReservedDescriptors, limit.rlim_cur / 2);
  return std::clamp<std::size_t>(connections, 1,
                                 std::max<std::size_t>(limit.rlim_cur - reserve, 1));
}

/// Asio's operations on a socket ask nothing of its family, so the streams, and all that Beast
/// makes of them, are compiled for one type alone.
Result<void> listenOnUnixSocket(State& state) {
  TRY(listener, UnixListener::open(*state.options.unix_socket));
  error_code error;
  state.acceptor.assign(tcp::v4(), listener.releaseDescriptor(), error);
  state.unix_listener.emplace(std::move(listener));
  if (error)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot listen on {}: {}", state.options.unix_socket->path.string(),
                            error.message()));
  return {};
}

Result<void> listenOnPort(State& state) {
  error_code error;
  const auto address = asio::ip::make_address(state.options.address, error);
  if (error)
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is not an address to listen on", state.options.address));
  const tcp::endpoint endpoint(address, state.options.port);
  state.acceptor.open(endpoint.protocol(), error);
  if (!error) state.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) ::fcntl(state.acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  if (!error) state.acceptor.bind(endpoint, error);
  if (!error) state.acceptor.listen(kBacklog, error);
  if (!error) return {};
  const auto code =
      error == asio::error::address_in_use ? ErrorCode::Conflict : ErrorCode::Unavailable;
  const bool is_elsewhere =
      error == boost::system::errc::address_not_available;  // no interface of this host has it
  return fail(Error(code, fmt::format("cannot listen on {}:{}: {}{}", state.options.address,
                                      state.options.port, error.message(),
                                      is_elsewhere ? ": no interface of this host has that address "
                                                     "(ip -br address shows those it has)"
                                                   : ""))
                  .because(is_elsewhere ? ListenProblem::AddressNotHere : ListenProblem::Other));
}

}  // namespace

Result<std::unique_ptr<HttpServer>> startHttpServer(asio::any_io_executor executor,
                                                    ServerOptions options) {
  std::shared_ptr<asio::ssl::context> tls;
  if (options.identity) {
    TRY(made, makeServerTls(options));
    tls = std::move(made);
  }
  return startHttpServer(std::move(executor), std::move(options), std::move(tls));
}

Result<std::unique_ptr<HttpServer>> startHttpServer(asio::any_io_executor executor,
                                                    ServerOptions options,
                                                    std::shared_ptr<asio::ssl::context> tls) {
  ::signal(SIGPIPE, SIG_IGN);  // sendfile has no MSG_NOSIGNAL
  auto state = std::make_shared<State>(executor);
  state->options = std::move(options);
  state->options.max_connections = withinDescriptors(state->options.max_connections);
  state->bodies = std::make_shared<BodyBudget>(state->options.max_bodies_bytes);
  state->tls = std::move(tls);
  TRY_OK(state->options.unix_socket ? listenOnUnixSocket(*state) : listenOnPort(*state));
  asio::co_spawn(executor, acceptLoop(state), [](const std::exception_ptr&) {});
  return std::make_unique<BeastServer>(std::move(state));
}

}  // namespace muster::io
