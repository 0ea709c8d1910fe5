// HTTP(S) server on Beast: one coroutine a connection, routes by longest path, files sent in bounded pieces.
#include "base/io/files.h"
#include "base/io/http_range.h"
#include "base/io/http_stream.h"
#include "base/io/server_tls.h"

#include <fmt/format.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <list>

namespace muster::io {

namespace http = boost::beast::http;

namespace {

constexpr std::uint32_t kHeaderLimitBytes = 64u << 10;
constexpr std::chrono::seconds kHandshakeLimit{20};
constexpr std::chrono::seconds kHandlerLimit{600};      ///< longest long-poll or upload that a handler may work on
constexpr std::chrono::milliseconds kAcceptPause{100};  ///< after an error of accept (out of descriptors)
constexpr std::size_t kFilePieceBytes = 1u << 20;
constexpr std::size_t kTlsPieceBytes = 128u << 10;
constexpr std::size_t kSmallBodyBytes = 6u << 10;
constexpr int kBacklog = 1024;

struct Session : std::enable_shared_from_this<Session> {
  explicit Session(tcp::socket socket)
      : connection(std::make_shared<Connection>(std::move(socket))), handler_limit(connection->stream.get_executor(), [this] { callOff(); }) {}

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
};

/// What the accept loop, the sessions and the server object share.
struct State {
  ServerOptions options;
  std::shared_ptr<asio::ssl::context> tls;
  tcp::acceptor acceptor;
  std::vector<std::pair<Route, std::shared_ptr<const Handler>>> routes;
  std::list<std::shared_ptr<Session>> sessions;
  bool stopped = false;

  explicit State(const asio::any_io_executor& executor) : acceptor(executor) {}
};
using Shared = std::shared_ptr<State>;

// ---- routes

struct Match {
  std::shared_ptr<const Handler> handler;  ///< kept alive while its coroutine runs: it may read its captures
  bool path_known = false;
};

Match findRoute(const State& state, const std::string& method, const std::string& path) {
  Match best;
  std::size_t best_length = 0;
  bool best_exact_method = false;
  for (const auto& [route, handler] : state.routes) {
    const bool below = !route.path.empty() && route.path.back() == '/' && path.starts_with(route.path);
    if (path != route.path && !below) continue;
    best.path_known = true;
    const bool exact_method = route.method == method || (method == "HEAD" && route.method == "GET");
    if (!exact_method && route.method != "*") continue;
    const bool better = route.path.size() > best_length || (route.path.size() == best_length && exact_method && !best_exact_method);
    if (best.handler && !better) continue;
    best.handler = handler;
    best_length = route.path.size();
    best_exact_method = exact_method;
  }
  return best;
}

/// Handlers may join the path to a folder: nothing that climbs out of it gets to them.
bool isCleanPath(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = 0; (at = path.find("/..", at)) != std::string_view::npos; at += 3) {
    if (at + 3 == path.size() || path[at + 3] == '/') return false;
  }
  return true;
}

Task<ServerResponse> callHandler(std::shared_ptr<const Handler> handler, ServerRequest request) {
  std::string problem;
  try {
    auto work = (*handler)(std::move(request));
    co_return co_await std::move(work);
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) throw;
    problem = e.what();
  } catch (const std::exception& e) {
    problem = e.what();
  }
  logText(LogLevel::Error, "http", "a handler threw: " + problem);
  co_return ServerResponse::text(500, "internal error\n");
}

Task<void> pause(std::chrono::milliseconds duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor, duration);
  auto wait = timer.async_wait(asio::use_awaitable);
  co_await std::move(wait);
}

Task<ServerResponse> answerTo(Shared state, ServerRequest request) {
  const auto path = request.path();
  if (!isCleanPath(path)) co_return ServerResponse::text(400, "bad path\n");
  auto match = findRoute(*state, request.method, path);
  if (!match.handler)
    co_return ServerResponse::text(match.path_known ? 405 : 404, match.path_known ? "method not allowed\n" : "not found\n");
  auto work = callHandler(match.handler, std::move(request));
  co_return co_await std::move(work);
}

// ---- answers

struct Reply {
  std::shared_ptr<Connection> connection;
  std::chrono::seconds idle_timeout{0};
  bool keep_alive = false;
  bool head_only = false;  ///< HEAD
  std::string range;
};

template <class Body>
http::response<Body> begin(const Reply& reply, int status, const Headers& headers, std::uint64_t content_length) {
  http::response<Body> message(static_cast<http::status>(status), 11);
  for (const auto& [name, value] : headers) message.set(name, value);
  message.set(http::field::server, "muster");
  message.keep_alive(reply.keep_alive);
  const bool bodiless = status / 100 == 1 || status == 204 || status == 304;
  if (!bodiless) message.content_length(content_length);
  reply.connection->arm(reply.idle_timeout);
  return message;
}

/// Head and body in one piece: one packet, one TLS record.
Task<error_code> writeSmall(Reply* reply, int status, Headers headers, std::string body) {
  auto message = begin<http::string_body>(*reply, status, headers, body.size());
  message.body() = std::move(body);
  error_code error;
  auto write = http::async_write(reply->connection->stream, message, asio::redirect_error(asio::use_awaitable, error));
  co_await std::move(write);
  co_return error;
}

Task<error_code> writeHead(Reply* reply, int status, Headers headers, std::uint64_t content_length) {
  auto message = begin<http::empty_body>(*reply, status, headers, content_length);
  http::response_serializer<http::empty_body> serializer(message);
  error_code error;
  auto write = http::async_write_header(reply->connection->stream, serializer, asio::redirect_error(asio::use_awaitable, error));
  co_await std::move(write);
  co_return error;
}

Task<error_code> writeText(Reply* reply, int status, Headers headers, std::string body) {
  if (!reply->head_only && body.size() <= kSmallBodyBytes) {
    auto whole = writeSmall(reply, status, std::move(headers), std::move(body));
    co_return co_await std::move(whole);
  }
  auto head = writeHead(reply, status, std::move(headers), body.size());
  error_code error = co_await std::move(head);
  if (error || reply->head_only) co_return error;
  std::string_view rest = body;
  while (!rest.empty() && !error) {  // in pieces, so that the deadline is for a stall and not for the whole body
    reply->connection->arm(reply->idle_timeout);
    const auto piece = rest.substr(0, kFilePieceBytes);
    auto write = asio::async_write(reply->connection->stream, asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
    co_await std::move(write);
    rest.remove_prefix(piece.size());
  }
  co_return error;
}

/// Plain connections: the kernel copies from the page cache to the socket.
Task<error_code> sendPlain(Reply* reply, int fd, Piece piece) {
  auto& socket = reply->connection->stream.socket();
  error_code error;
  socket.native_non_blocking(true, error);
  auto offset = static_cast<off_t>(piece.offset);
  auto executor = co_await asio::this_coro::executor;
  while (piece.length > 0) {
    reply->connection->arm(reply->idle_timeout);
    const auto n = ::sendfile(socket.native_handle(), fd, &offset, std::min<std::uint64_t>(piece.length, kFilePieceBytes));
    if (n == 0) co_return asio::error::eof;  // the file became shorter
    if (n < 0 && errno != EAGAIN && errno != EINTR) co_return error_code(errno, boost::system::system_category());
    if (n > 0) {
      piece.length -= static_cast<std::uint64_t>(n);
      co_await asio::post(executor, asio::use_awaitable);  // others have their turn between pieces
      continue;
    }
    auto ready = socket.async_wait(tcp::socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
    co_await std::move(ready);
    if (error) co_return error;
  }
  co_return error_code();
}

Task<error_code> sendEncrypted(Reply* reply, int fd, Piece piece) {
  std::string window(std::min<std::uint64_t>(piece.length, kTlsPieceBytes), '\0');
  error_code error;
  while (piece.length > 0 && !error) {
    const auto n = ::pread(fd, window.data(), std::min<std::uint64_t>(piece.length, window.size()), static_cast<off_t>(piece.offset));
    if (n == 0) co_return asio::error::eof;
    if (n < 0) co_return error_code(errno, boost::system::system_category());
    reply->connection->arm(reply->idle_timeout);
    auto write = asio::async_write(reply->connection->stream, asio::buffer(window.data(), static_cast<std::size_t>(n)),
                                   asio::redirect_error(asio::use_awaitable, error));
    co_await std::move(write);
    piece.offset += static_cast<std::uint64_t>(n);
    piece.length -= static_cast<std::uint64_t>(n);
  }
  co_return error;
}

Task<error_code> writeFile(Reply* reply, int status, Headers headers, FileBody body) {
  Fd fd(::open(body.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    auto missing = writeText(reply, 404, Headers(), "not found\n");
    co_return co_await std::move(missing);
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  Piece piece{0, size};
  headers["Accept-Ranges"] = "bytes";
  const auto kind = status == 200 ? rangeOf(reply->range, size, piece) : RangeKind::Whole;
  if (kind == RangeKind::Unsatisfiable) {
    headers["Content-Range"] = fmt::format("bytes */{}", size);
    auto refusal = writeText(reply, 416, std::move(headers), std::string());
    co_return co_await std::move(refusal);
  }
  if (kind == RangeKind::Part) {
    status = 206;
    headers["Content-Range"] = fmt::format("bytes {}-{}/{}", piece.offset, piece.offset + piece.length - 1, size);
  }
  auto head = writeHead(reply, status, std::move(headers), piece.length);
  const error_code error = co_await std::move(head);
  if (error || reply->head_only) co_return error;
  auto send = reply->connection->stream.tls() ? sendEncrypted(reply, fd.get(), piece) : sendPlain(reply, fd.get(), piece);
  co_return co_await std::move(send);
}

Task<error_code> write(Reply* reply, ServerResponse response) {
  auto work = std::holds_alternative<FileBody>(response.body)
                  ? writeFile(reply, response.status, std::move(response.headers), std::get<FileBody>(std::move(response.body)))
                  : writeText(reply, response.status, std::move(response.headers), std::get<std::string>(std::move(response.body)));
  co_return co_await std::move(work);
}

// ---- sessions

using Parser = http::request_parser<http::string_body>;

/// Reads one request. On a bad one answers it and says so by an error.
Task<error_code> readRequest(Shared state, std::shared_ptr<Connection> connection, Parser* parser) {
  error_code error;
  connection->arm(state->options.idle_timeout);
  parser->header_limit(kHeaderLimitBytes);
  parser->body_limit(state->options.max_body_bytes);
  auto head = http::async_read_header(connection->stream, connection->buffer, *parser, asio::redirect_error(asio::use_awaitable, error));
  co_await std::move(head);
  const std::string expect(parser->is_header_done() ? parser->get()[http::field::expect] : boost::beast::string_view());
  if (!error && boost::beast::iequals(expect, "100-continue")) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    auto go = asio::async_write(connection->stream, asio::buffer(kContinue), asio::redirect_error(asio::use_awaitable, error));
    co_await std::move(go);
  }
  while (!error && !parser->is_done()) {
    connection->arm(state->options.idle_timeout);
    auto some = http::async_read_some(connection->stream, connection->buffer, *parser, asio::redirect_error(asio::use_awaitable, error));
    co_await std::move(some);
  }
  const bool malformed = error.category() == http::make_error_code(http::error::bad_method).category();
  if (!malformed || error == http::error::end_of_stream || error == http::error::partial_message) co_return error;
  Reply reply{connection, state->options.idle_timeout};
  const int status = error == http::error::body_limit ? 413 : error == http::error::header_limit ? 431 : 400;
  auto refusal = writeText(&reply, status, Headers(), error.message() + "\n");
  co_await std::move(refusal);
  co_return error;
}

Task<void> serveRequests(Shared state, std::shared_ptr<Session> session) {
  const auto connection = session->connection;
  bool keep_alive = true;
  while (keep_alive && !state->stopped) {
    Parser parser;
    auto read = readRequest(state, connection, &parser);
    if (co_await std::move(read)) break;
    auto message = parser.release();
    ServerRequest request;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    request.headers = headersOf(message);
    request.body = std::move(message.body());
    request.remote_address = session->remote_address;
    request.client_common_name = session->client.common_name;
    request.expired_client_common_name = session->client.expired_common_name;
    request.client_key_id = session->client.key_id;
    keep_alive = message.keep_alive();
    Reply reply{connection, state->options.idle_timeout, keep_alive, request.method == "HEAD"};
    if (const auto range = request.headers.find("Range"); range != request.headers.end() && !request.headers.contains("If-Range")) {
      reply.range = range->second;
    }
    connection->lift();
    session->handler_limit.set(kHandlerLimit);
    auto work = answerTo(state, std::move(request));
    auto response = co_await std::move(work);
    session->handler_limit.lift();
    auto answer = write(&reply, std::move(response));
    if (co_await std::move(answer)) break;
  }
}

Task<void> farewell(std::shared_ptr<Connection> connection) {
  error_code error;
  if (connection->stream.socket().is_open() && connection->stream.tls()) {
    connection->arm(kHandshakeLimit);
    auto bye = connection->stream.tls()->async_shutdown(asio::redirect_error(asio::use_awaitable, error));
    co_await std::move(bye);
  }
  connection->stream.socket().shutdown(tcp::socket::shutdown_both, error);
  connection->close();
}

Task<void> runSession(Shared state, std::shared_ptr<Session> session) {
  const auto connection = session->connection;
  if (state->tls) {
    connection->keep = state->tls;
    connection->stream.startTls(*state->tls);
    connection->arm(kHandshakeLimit);
    error_code error;
    auto shake =
        connection->stream.tls()->async_handshake(TlsStream::Side::Server, asio::redirect_error(asio::use_awaitable, error));
    co_await std::move(shake);
    if (error) {
      logDebug("http", "TLS with {}: {}", session->remote_address, error.message());
      co_return;
    }
    session->client = clientOf(*connection->stream.tls());
  }
  auto serve = serveRequests(state, session);
  co_await std::move(serve);
  auto bye = farewell(connection);
  co_await std::move(bye);
}

void startSession(const Shared& state, tcp::socket socket) {
  error_code error;
  socket.set_option(tcp::no_delay(true), error);
  const auto remote_address = socket.remote_endpoint(error).address().to_string();
  auto session = std::make_shared<Session>(std::move(socket));
  session->remote_address = remote_address;
  const auto place = state->sessions.insert(state->sessions.end(), session);
  auto ended = [state, place, session](const std::exception_ptr&) {
    session->ended = true;
    session->handler_limit.stop();
    session->connection->close();
    state->sessions.erase(place);
  };
  asio::co_spawn(state->acceptor.get_executor(), runSession(state, session),
                 asio::bind_cancellation_slot(session->cancel.slot(), std::move(ended)));
}

Task<void> acceptLoop(Shared state) {
  bool refusing = false, failing = false;  // each said once for each time that it is so: a storm would drown the log
  while (!state->stopped) {
    error_code error;
    auto accept = state->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    auto socket = co_await std::move(accept);
    if (state->stopped) co_return;
    if (error) {
      if (!std::exchange(failing, true)) logWarning("http", "no more connections can be taken now: {}", error.message());
      auto rest = pause(kAcceptPause);
      co_await std::move(rest);
      continue;
    }
    if (state->sessions.size() >= state->options.max_connections) {
      if (!std::exchange(refusing, true)) logWarning("http", "{} connections are open: more are refused", state->sessions.size());
      continue;
    }
    refusing = failing = false;
    startSession(state, std::move(socket));
  }
}

class BeastServer final : public HttpServer {
 public:
  explicit BeastServer(Shared state) : state_(std::move(state)), port_(state_->acceptor.local_endpoint().port()) {}
  ~BeastServer() override { stop(); }

  std::uint16_t port() const override { return port_; }
  void addRoutes(std::vector<Route> routes) override {
    for (auto& route : routes) {
      auto handler = std::make_shared<const Handler>(route.handle);
      state_->routes.emplace_back(std::move(route), std::move(handler));
    }
  }
  void stop() override {
    if (std::exchange(state_->stopped, true)) return;
    error_code ignored;
    state_->acceptor.close(ignored);
    for (const auto& session : state_->sessions) {
      session->connection->close();
      // From inside the executor: elsewhere Asio 1.81 queues the cancellation with a bare pointer to the coroutine, which
      // may have ended by then.
      asio::post(state_->acceptor.get_executor(), [session] {
        if (!session->ended) session->cancel.emit(asio::cancellation_type::terminal);
      });
    }
  }

 private:
  Shared state_;
  std::uint16_t port_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> startHttpServer(asio::any_io_executor executor, ServerOptions options) {
  std::shared_ptr<asio::ssl::context> tls;
  if (options.identity) {
    TRY(made, makeServerTls(options));
    tls = std::move(made);
  }
  return startHttpServer(std::move(executor), std::move(options), std::move(tls));
}

Result<std::unique_ptr<HttpServer>> startHttpServer(asio::any_io_executor executor, ServerOptions options, std::shared_ptr<asio::ssl::context> tls) {
  ::signal(SIGPIPE, SIG_IGN);  // sendfile has no MSG_NOSIGNAL
  auto state = std::make_shared<State>(executor);
  state->options = std::move(options);
  state->tls = std::move(tls);
  error_code error;
  const auto address = asio::ip::make_address(state->options.address, error);
  if (error) return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is not an address to listen on", state->options.address));
  const tcp::endpoint endpoint(address, state->options.port);
  state->acceptor.open(endpoint.protocol(), error);
  if (!error) state->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) ::fcntl(state->acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  if (!error) state->acceptor.bind(endpoint, error);
  if (!error) state->acceptor.listen(kBacklog, error);
  if (error) {
    const auto code = error == asio::error::address_in_use ? ErrorCode::Conflict : ErrorCode::Unavailable;
    return fail(code, fmt::format("cannot listen on {}:{}: {}", state->options.address, state->options.port, error.message()));
  }
  asio::co_spawn(executor, acceptLoop(state), [](const std::exception_ptr&) {});
  return std::make_unique<BeastServer>(std::move(state));
}

}  // namespace muster::io
