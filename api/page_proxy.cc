// SPDX-License-Identifier: Apache-2.0
#include "api/page_proxy.h"

#include "api/page_session.h"
#include "api/request_headers.h"
#include "base/io/crypto.h"
#include "base/io/dialogue.h"

#include <fmt/format.h>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace muster::api {
namespace {

constexpr std::size_t kSecretBytes = 32, kNameBytes = 6;
constexpr std::size_t kMaxOrderBodyBytes = 64u << 10;  ///< as the server takes it
constexpr std::size_t kMaxHeadBytes = 32u << 10;       ///< of the server's answer
constexpr std::size_t kMaxConnections = 256;
constexpr std::string_view kTicket = "ticket";

// What goes on, by name: who asks is the socket's peer, and nothing that a browser sends says else.
constexpr std::array<std::string_view, 7> kRequestHeaders{
    "Accept",          "Accept-Encoding", "Content-Type", "If-None-Match",
    "Idempotency-Key", "Last-Event-ID",   "X-Request-Id"};
constexpr std::array<std::string_view, 3> kDroppedHeaders{"Connection", "Content-Length",
                                                          "Transfer-Encoding"};

/// Takes as long for a wrong secret as for the right one.
bool isSecret(std::string_view shown, std::string_view secret) {
  return !secret.empty() && io::equalConstantTime(shown, secret);
}

io::ServerResponse say(int status, std::string text) {
  auto out = io::ServerResponse::text(status, std::move(text));
  out.headers["Cache-Control"] = "no-store";
  out.headers["X-Content-Type-Options"] = "nosniff";
  out.headers["Referrer-Policy"] = "no-referrer";
  return out;
}

/// HTTP/1.0: the answer's body ends with its connection, and has no chunks.
std::string requestText(const io::ServerRequest& request) {
  auto out = fmt::format("{} {} HTTP/1.0\r\nHost: localhost\r\n", request.method, request.target);
  for (const auto name : kRequestHeaders)
    if (const auto value = headerOf(request, std::string(name)); !value.empty())
      out += fmt::format("{}: {}\r\n", name, value);
  if (request.method != "GET" && request.method != "HEAD")
    out += fmt::format("Content-Length: {}\r\n", request.body.size());
  return out + "\r\n" + request.body;
}

/// Of the text before the empty line. Errors: Corrupt
Result<io::ServerResponse> parseHead(std::string_view head) {
  io::ServerResponse out;
  const auto first = head.substr(0, head.find("\r\n"));
  const auto space = first.find(' ');
  if (!first.starts_with("HTTP/1.") || space == std::string_view::npos ||
      std::from_chars(first.data() + space + 1, first.data() + first.size(), out.status).ec !=
          std::errc() ||
      out.status < 200 || out.status > 599)
    return fail(ErrorCode::Corrupt, "what answers on the socket speaks no HTTP");
  head.remove_prefix(std::min(first.size() + 2, head.size()));
  while (!head.empty()) {
    const auto end = std::min(head.find("\r\n"), head.size());
    const auto line = head.substr(0, end);
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos)
      return fail(ErrorCode::Corrupt, "the server's answer has a header without a name");
    out.headers[std::string(line.substr(0, colon))] = std::string(line.substr(colon + 2));
    head.remove_prefix(std::min(end + 2, head.size()));
  }
  for (const auto name : kDroppedHeaders) out.headers.erase(std::string(name));
  return out;
}

Async<io::ServerResponse> askServer(std::filesystem::path socket, io::ServerRequest request) {
  auto dialled = io::dialDialogue(co_await asio::this_coro::executor, socket);
  if (!dialled) co_return std::unexpected(dialled.error());
  std::shared_ptr<io::Dialogue> dialogue = std::move(*dialled);
  auto written = co_await dialogue->write(requestText(request));
  if (!written) co_return std::unexpected(written.error());
  std::string text;
  std::size_t end = std::string::npos;
  while ((end = text.find("\r\n\r\n")) == std::string::npos) {
    auto piece = co_await dialogue->read();
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty() || text.size() > kMaxHeadBytes)
      co_return fail(ErrorCode::Unavailable, "the server closed before it answered");
    text += *piece;
  }
  auto answer = parseHead(std::string_view(text).substr(0, end));
  if (!answer) co_return std::unexpected(answer.error());
  if (request.method == "HEAD" || answer->status == 204 || answer->status == 304)
    co_return std::move(*answer);
  auto rest = std::make_shared<std::string>(text.substr(end + 4));
  const auto type = answer->headers.find("Content-Type");
  io::StreamBody body;
  body.content_type = type == answer->headers.end() ? "application/octet-stream" : type->second;
  body.next = [dialogue, rest]() -> Task<std::optional<std::string>> {
    if (!rest->empty()) co_return std::exchange(*rest, {});
    auto piece = co_await dialogue->read();
    if (!piece || piece->empty()) co_return std::nullopt;
    co_return std::move(*piece);
  };
  answer->body = std::move(body);
  co_return std::move(*answer);
}

}  // namespace

struct PageProxy::State : std::enable_shared_from_this<State> {
  std::filesystem::path socket;
  std::string name = "muster-" + io::toHex(io::randomBytes(kNameBytes)) + ".localhost";
  std::string ticket = io::toHex(io::randomBytes(kSecretBytes));
  std::string secret = io::toHex(io::randomBytes(kSecretBytes));
  std::unique_ptr<io::HttpServer> server;

  std::string host() const { return fmt::format("{}:{}", name, server->port()); }
  bool showsTicket(const io::ServerRequest& request) const {
    return request.method == "GET" && request.path() == "/" &&
           isSecret(io::queryOf(request.target)[std::string(kTicket)], ticket);
  }
  bool knows(const io::ServerRequest& request) const {
    return isSecret(cookieOf(headerOf(request, "Cookie"), "muster-ui"), secret);
  }
  /// A browser says where an order comes from; what does not say it is no page of ours.
  bool isOwnOrder(const io::ServerRequest& request) const {
    if (request.method == "GET" || request.method == "HEAD") return true;
    const auto origin = headerOf(request, "Origin");
    return origin == "http://" + host() && (headerOf(request, "Sec-Fetch-Site").empty() ||
                                            headerOf(request, "Sec-Fetch-Site") == "same-origin");
  }
  io::Admission admit(const io::ServerRequest& head) const {
    if (headerOf(head, "Host") != host())
      return {0, say(421, "this is not the address that `muster ui` printed\n")};
    if (!showsTicket(head) && !knows(head))
      return {0, say(403,
                     "Open the address that `muster ui` printed. It works once, in one "
                     "browser; start `muster ui` again for another one.\n")};
    if (!isOwnOrder(head)) return {0, say(403, "this order came from a page of another site\n")};
    return {kMaxOrderBodyBytes, std::nullopt};
  }
  Task<io::ServerResponse> handle(io::ServerRequest request) {
    if (showsTicket(request)) {
      ticket.clear();
      auto out = say(303, "");
      out.headers["Location"] = "/";
      out.headers["Set-Cookie"] =
          fmt::format("muster-ui={}; Path=/; HttpOnly; SameSite=Strict", secret);
      co_return out;
    }
    auto answer = co_await askServer(socket, std::move(request));
    if (answer) co_return std::move(*answer);
    auto out = say(502, "the server does not answer: " + answer.error().str() + "\n");
    out.headers["Retry-After"] = "2";
    co_return out;
  }
};

Async<std::unique_ptr<PageProxy>> PageProxy::start(std::filesystem::path socket,
                                                   std::uint16_t port) {
  const auto executor = co_await asio::this_coro::executor;
  const auto answers = io::dialDialogue(executor, socket);
  if (!answers) co_return std::unexpected(answers.error());
  auto state = std::make_shared<State>();
  state->socket = std::move(socket);
  io::ServerOptions options;
  options.port = port;
  options.max_body_bytes = kMaxOrderBodyBytes;
  options.max_connections = kMaxConnections;
  auto server = io::startHttpServer(executor, std::move(options));
  if (!server) co_return std::unexpected(server.error());
  auto* self = state.get();
  (*server)->addRoutes(
      {{"*", "/", [self](io::ServerRequest request) { return self->handle(std::move(request)); },
        [self](const io::ServerRequest& head) { return self->admit(head); }}});
  state->server = std::move(*server);
  co_return std::unique_ptr<PageProxy>(new PageProxy(std::move(state)));
}

PageProxy::PageProxy(std::shared_ptr<State> state) : state_(std::move(state)) {}
PageProxy::~PageProxy() = default;

std::string PageProxy::url() const {
  return fmt::format("http://{}/?{}={}", state_->host(), kTicket, state_->ticket);
}
std::uint16_t PageProxy::port() const { return state_->server->port(); }

}  // namespace muster::api
