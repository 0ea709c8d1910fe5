// SPDX-License-Identifier: Apache-2.0
// HTTP client on Beast: kept-alive connections per origin, one deadline over each request.
#include "base/io/http_stream.h"
#include "base/io/unix_client.h"

#include <fmt/format.h>
#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/write.hpp>

#include <sys/socket.h>
#include <algorithm>
#include <cstdlib>

namespace muster::io {

namespace http = boost::beast::http;
using SteadyTime = std::chrono::steady_clock::time_point;

namespace {

constexpr std::size_t kWindowBytes = 256u << 10;
constexpr std::size_t kShortBodyBytes = 4u << 10,
                      kReadBytes =
                          64u << 10;  ///< what is longer than a few reads is read in large ones
constexpr std::uint32_t kHeaderLimitBytes = 64u << 10;
constexpr std::size_t kErrorBodyBytes = 64u << 10;  ///< of a failed download, kept for the message
constexpr std::size_t kIdlePerOrigin = 4;
constexpr std::chrono::seconds kIdleReuse{
    20};  ///< where many machines are waited for, the turns of each are seconds apart; a handshake
          ///< costs more than ten requests
constexpr int kInformationalLimit = 8;  ///< 1xx answers before the real one

using Sink = std::function<Result<void>(std::string_view)>;

struct Idle {
  std::shared_ptr<Connection> connection;
  SteadyTime since;
};

using Pool = std::map<std::string, std::vector<Idle>>;  // by origin

/// The kept-alive connections of all clients of an io_context. A client may outlive that context;
/// they may not. And whoever talks to ten thousand servers in turn must not hold a connection to
/// each of them.
class IdleConnections final : public asio::execution_context::service {
 public:
  static inline asio::execution_context::id id;
  explicit IdleConnections(asio::execution_context& owner) : service(owner) {}

  void watch(const std::shared_ptr<Pool>& pool) { pools_.push_back(pool); }

  /// Closes what has been idle for too long, of every client. Called as connections are made, so it
  /// needs no timer, which would keep the context running.
  void sweep() {
    const auto now = std::chrono::steady_clock::now();
    if (now - swept_ < kSweepEvery) return;
    swept_ = now;
    std::erase_if(pools_, [](const auto& weak) { return weak.expired(); });
    for (const auto& weak : pools_)
      if (const auto pool = weak.lock()) closeOlder(*pool, now - kIdleReuse);
  }

 private:
  static constexpr std::chrono::seconds kSweepEvery{2};

  static void closeOlder(Pool& pool, SteadyTime oldest) {
    for (auto& [origin, connections] : pool)
      std::erase_if(connections, [oldest](const Idle& idle) { return idle.since < oldest; });
    std::erase_if(pool, [](const auto& entry) { return entry.second.empty(); });
  }

  void shutdown() override {
    for (const auto& weak : std::exchange(pools_, {}))
      if (const auto pool = weak.lock()) pool->clear();
  }

  std::vector<std::weak_ptr<Pool>> pools_;
  SteadyTime swept_{};
};

/// One request in flight; lives in the frame of `transfer`.
struct Exchange {
  HttpRequest request;
  Sink sink;  ///< empty: the body is collected
  SteadyTime deadline;
  std::shared_ptr<Connection> connection;
  bool reused = false;
  bool resuming = false;  ///< a TLS session of before was offered
  bool answered = false;  ///< the head of the answer arrived
};

bool isIdempotent(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

/// Nothing may have arrived on an idle connection; if something did, it is the server's goodbye.
bool stillOpen(tcp::socket& socket) {
  char byte;
  return ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::unexpected<Error> failTransfer(const Exchange& exchange, error_code error,
                                    std::string_view doing) {
  const auto& request = exchange.request;
  const auto what = fmt::format("{} {}", request.method, request.url.str());
  if (exchange.connection && exchange.connection->timedOut()) {
    return fail(ErrorCode::Timeout, fmt::format("{}: nothing within {} ms while {}", what,
                                                request.timeout.count(), doing));
  }
  if (error == asio::error::operation_aborted)
    return fail(ErrorCode::Timeout, fmt::format("{} was cancelled", what));
  if (error == http::error::body_limit || error == http::error::header_limit) {
    return fail(ErrorCode::Corrupt, fmt::format("{}: the answer is larger than allowed", what));
  }
  const bool lost = error == http::error::end_of_stream || error == http::error::partial_message;
  if (!lost && error.category() == http::make_error_code(http::error::end_of_stream).category()) {
    return fail(ErrorCode::Corrupt,
                fmt::format("{}: the answer is not HTTP: {}", what, error.message()));
  }
  // After a TLS 1.3 handshake a refused client certificate shows only now, as an alert.
  if (error.category() == boost::asio::error::get_ssl_category())
    return fail(ErrorCode::Denied, fmt::format("{}: TLS: {}", what, error.message()));
  return fail(ErrorCode::Unavailable,
              fmt::format("{}: {} while {}", what,
                          lost ? "the connection was closed" : error.message(), doing));
}

std::chrono::milliseconds left(SteadyTime deadline) {
  return std::max(std::chrono::milliseconds(1), std::chrono::ceil<std::chrono::milliseconds>(
                                                    deadline - std::chrono::steady_clock::now()));
}

class BeastClient final : public HttpClient {
 public:
  explicit BeastClient(TlsTrust trust, std::optional<UnixHttpOptions> unix_socket = {})
      : tls_(TlsClient::make(std::move(trust))), unix_socket_(std::move(unix_socket)) {}

  Async<HttpResponse> send(HttpRequest request) override {
    return transfer(std::move(request), {});
  }
  Async<HttpResponse> fetch(HttpRequest request, Sink sink) override {
    return transfer(std::move(request), std::move(sink));
  }
  std::string peerFingerprint() const override { return *fingerprint_; }

 private:
  Async<HttpResponse> transfer(HttpRequest request, Sink sink);
  Async<void> connect(Exchange* exchange);
  Async<void> handshake(Exchange* exchange);
  Result<void> dial(Exchange* exchange);
  std::shared_ptr<Connection> takeIdle(const std::string& origin);

  Result<std::shared_ptr<TlsClient>> tls_;
  std::optional<UnixHttpOptions> unix_socket_;
  // Shared with requests in flight, which may outlive the client for the moment in which they are
  // cancelled.
  std::shared_ptr<std::string> fingerprint_ = std::make_shared<std::string>();
  std::shared_ptr<Pool> idle_ = std::make_shared<Pool>();
  asio::execution_context* watched_by_ = nullptr;
};

/// Addresses need no lookup. The system's resolver has its own bound (resolv.conf: a few seconds).
Async<tcp::resolver::results_type> resolve(Exchange* exchange, asio::any_io_executor executor) {
  const auto& url = exchange->request.url;
  error_code error;
  const auto address = asio::ip::make_address(url.host, error);
  if (!error)
    co_return tcp::resolver::results_type::create(tcp::endpoint(address, url.port), url.host,
                                                  std::to_string(url.port));
  tcp::resolver resolver(executor);
  auto results = co_await resolver.async_resolve(url.host, std::to_string(url.port),
                                                 asio::redirect_error(asio::use_awaitable, error));
  if (error)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("cannot resolve {}: {}", url.host, error.message()));
  co_return results;
}

Async<void> BeastClient::connect(Exchange* exchange) {
  auto executor = co_await asio::this_coro::executor;
  auto& context = asio::query(executor, asio::execution::context);
  auto& idle_connections = asio::use_service<IdleConnections>(context);
  idle_connections.sweep();
  if (std::exchange(watched_by_, &context) != &context) idle_connections.watch(idle_);
  if (unix_socket_) {
    exchange->connection = std::make_shared<Connection>(tcp::socket(executor));
    co_return dial(exchange);
  }
  CO_TRY(endpoints, co_await resolve(exchange, executor));
  exchange->connection = std::make_shared<Connection>(tcp::socket(executor));
  auto& connection = *exchange->connection;
  connection.arm(left(exchange->deadline));
  error_code error;
  co_await asio::async_connect(connection.stream.socket(), endpoints,
                               asio::redirect_error(asio::use_awaitable, error));
  if (error || connection.timedOut()) co_return failTransfer(*exchange, error, "connecting");
  connection.stream.socket().set_option(tcp::no_delay(true), error);
  if (exchange->request.url.scheme != "https") co_return Result<void>();
  auto secured = co_await handshake(exchange);
  const bool again = !secured && exchange->resuming && secured.error().code() != ErrorCode::Timeout;
  if (!again) co_return secured;
  auto anew = connect(exchange);  // which offers no session now
  co_return co_await std::move(anew);
}

/// Asio's operations do not ask for the family of a descriptor (docs/adr/0290).
Result<void> BeastClient::dial(Exchange* exchange) {
  TRY(line, dialUnixSocket(unix_socket_->socket));
  TRY(server, peerCredentials(line.get()));
  const auto& owners = unix_socket_->owners;
  if (!owners.empty() && std::ranges::find(owners, server.uid) == owners.end())
    return fail(
        Error(ErrorCode::Denied,
              fmt::format("{} belongs to a program of the user with uid {}, and is not believed",
                          unix_socket_->socket.string(), server.uid))
            .because(DialFailure::NotBelieved));
  error_code error;
  exchange->connection->stream.socket().assign(tcp::v4(), line.get(), error);
  if (error) return fail(ErrorCode::Internal, "a Unix socket cannot be used: " + error.message());
  line.release();
  return {};
}

Async<void> BeastClient::handshake(Exchange* exchange) {
  if (!tls_) co_return std::unexpected(tls_.error());
  const auto tls = *tls_;
  const auto connection = exchange->connection;
  connection->stream.startTls(tls->context());
  connection->keep = tls;
  Handshake state;
  state.host = exchange->request.url.host;
  tls->prepare(*connection->stream.tls(), state);
  error_code error;
  co_await connection->stream.tls()->async_handshake(
      TlsStream::Side::Client, asio::redirect_error(asio::use_awaitable, error));
  if (!error) tls->met(*connection->stream.tls(), state);
  exchange->resuming = state.resuming && state.refusal.empty();
  if (error && exchange->resuming) tls->failedWithSession(state);
  if (!state.fingerprint.empty()) *fingerprint_ = state.fingerprint;
  if (!state.refusal.empty()) {
    co_return fail(ErrorCode::Denied, fmt::format("{} is not trusted: {}",
                                                  exchange->request.url.origin(), state.refusal));
  }
  if (error) co_return failTransfer(*exchange, error, "greeting by TLS");
  co_return Result<void>();
}

std::shared_ptr<Connection> BeastClient::takeIdle(const std::string& origin) {
  auto& idle = (*idle_)[origin];
  const auto oldest = std::chrono::steady_clock::now() - kIdleReuse;
  while (!idle.empty()) {
    auto last = std::move(idle.back());
    idle.pop_back();
    if (last.since > oldest && stillOpen(last.connection->stream.socket())) return last.connection;
  }
  return nullptr;
}

Task<error_code> writeRequest(Exchange* exchange) {
  const auto& from = exchange->request;
  http::request<http::span_body<const char>> message;
  message.version(11);
  message.method_string(from.method);
  message.target(from.url.target);
  const bool v6 = from.url.host.find(':') != std::string::npos;
  const bool default_port = from.url.port == (from.url.scheme == "https" ? 443 : 80);
  const auto host = v6 ? "[" + from.url.host + "]" : from.url.host;
  message.set(http::field::host, default_port ? host : fmt::format("{}:{}", host, from.url.port));
  message.set(http::field::user_agent, "muster");
  for (const auto& [name, value] : from.headers) message.set(name, value);
  message.body() = boost::beast::span<const char>(from.body.data(), from.body.size());
  if (from.bodyBytes() > 0 || (from.method != "GET" && from.method != "HEAD"))
    message.content_length(from.bodyBytes());
  error_code error;
  co_await http::async_write(exchange->connection->stream, message,
                             asio::redirect_error(asio::use_awaitable, error));
  for (std::string_view rest :
       {from.attachment ? std::string_view(*from.attachment) : std::string_view(),
        std::string_view(from.body_end)}) {
    if (error || rest.empty()) continue;
    co_await asio::async_write(exchange->connection->stream, asio::buffer(rest),
                               asio::redirect_error(asio::use_awaitable, error));
  }
  co_return error;
}

/// Reads the body in windows and hands it on; a window is all that is in memory of a download.
Async<void> readBody(Exchange* exchange, http::response_parser<http::buffer_body>* parser,
                     HttpResponse* response) {
  const auto connection = exchange->connection;
  const bool download = exchange->sink && response->status >= 200 && response->status < 300;
  const std::size_t collect_limit =
      exchange->sink ? kErrorBodyBytes : exchange->request.max_body_bytes;
  const auto announced = parser->content_length_remaining();
  // Beast reads as much as its buffer has room for, and that is 512 bytes: many thousand reads a
  // second of an image.
  const bool at_length = announced && *announced > kShortBodyBytes;
  if (at_length) connection->buffer.reserve(kReadBytes);
  if (at_length && !download)
    response->body.reserve(std::min<std::uint64_t>(*announced, collect_limit));
  std::string window(
      announced ? std::clamp<std::uint64_t>(*announced, 1, kWindowBytes) : kWindowBytes, '\0');
  while (!parser->is_done()) {
    if (download)
      connection->arm(exchange->request.timeout);  // a long download is fine, a stalled one is not
    parser->get().body().data = window.data();
    parser->get().body().size = window.size();
    error_code error;
    co_await http::async_read(connection->stream, connection->buffer, *parser,
                              asio::redirect_error(asio::use_awaitable, error));
    if (error == http::error::need_buffer) error = {};
    if (error || connection->timedOut())
      co_return failTransfer(*exchange, error, "reading the answer");
    const std::string_view piece(window.data(), window.size() - parser->get().body().size);
    if (download) {
      CO_TRY_OK(exchange->sink(piece));
    } else if (response->body.size() + piece.size() > collect_limit) {
      co_return failTransfer(*exchange, http::error::body_limit, "reading the answer");
    } else {
      response->body += piece;
    }
  }
  if (at_length) connection->buffer.shrink_to_fit();  // idle connections hold none
  co_return Result<void>();
}

Async<HttpResponse> exchangeOnce(Exchange* exchange) {
  const auto connection = exchange->connection;
  connection->arm(left(exchange->deadline));
  const auto write_error = co_await writeRequest(exchange);
  if (write_error == asio::error::operation_aborted)
    co_return failTransfer(*exchange, write_error, "sending");
  // A server may refuse a large body half-way and close: its answer is worth more than the broken
  // pipe.
  for (int i = 0; i < kInformationalLimit; ++i) {
    http::response_parser<http::buffer_body> parser;
    parser.header_limit(kHeaderLimitBytes);
    parser.body_limit(boost::none);
    parser.skip(exchange->request.method == "HEAD");
    error_code error;
    co_await http::async_read_header(connection->stream, connection->buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    if (error)
      co_return failTransfer(*exchange, write_error ? write_error : error,
                             write_error ? "sending" : "waiting for the answer");
    exchange->answered = true;
    if (parser.get().result_int() / 100 == 1) continue;
    HttpResponse response;
    response.status = static_cast<int>(parser.get().result_int());
    response.headers = headersOf(parser.get());
    CO_TRY_OK(co_await readBody(exchange, &parser, &response));
    connection->disarm();
    if (write_error || !parser.get().keep_alive() || parser.get().need_eof() ||
        connection->buffer.size() > 0)
      connection->close();
    co_return response;
  }
  co_return fail(ErrorCode::Corrupt,
                 fmt::format("{} sends no final answer", exchange->request.url.origin()));
}

/// A value with a line end would be read as further headers.
Result<void> areHeaders(const Headers& headers) {
  for (const auto& [name, value] : headers)
    if ((name + value).find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("the header {} has a line end in it; look at where its value comes "
                              "from",
                              name.substr(0, name.find_first_of("\r\n"))));
  return {};
}

Async<HttpResponse> BeastClient::transfer(HttpRequest request, Sink sink) {
  CO_TRY_OK(areHeaders(request.headers));
  Exchange exchange{std::move(request), std::move(sink), {}, nullptr};
  const auto idle = idle_;
  const auto origin = exchange.request.url.origin();
  exchange.deadline = std::chrono::steady_clock::now() + exchange.request.timeout;
  for (bool again = false;; again = true) {
    exchange.connection = again ? nullptr : takeIdle(origin);
    exchange.reused = exchange.connection != nullptr;
    exchange.answered = false;
    if (!exchange.reused) {
      CO_TRY_OK(co_await connect(&exchange));
    }
    auto result = co_await exchangeOnce(&exchange);
    if (result) {
      auto& pool = (*idle)[origin];
      if (exchange.connection->stream.socket().is_open() && pool.size() < kIdlePerOrigin) {
        pool.push_back({exchange.connection, std::chrono::steady_clock::now()});
      }
      co_return result;
    }
    exchange.connection->close();
    const bool closed_before =
        exchange.reused && !exchange.answered && result.error().code() == ErrorCode::Unavailable;
    if (!closed_before || !isIdempotent(exchange.request.method)) co_return result;
  }
}

}  // namespace

std::unique_ptr<HttpClient> makeHttpClient(TlsTrust trust) {
  return std::make_unique<BeastClient>(std::move(trust));
}

std::unique_ptr<HttpClient> makeUnixHttpClient(UnixHttpOptions options) {
  return std::make_unique<BeastClient>(TlsTrust{}, std::move(options));
}

}  // namespace muster::io
