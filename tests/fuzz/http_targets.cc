// SPDX-License-Identifier: Apache-2.0
// HTTP of anybody: the bytes of a connection go to the real server over the loopback interface, the
// fields that muster reads itself go to their functions.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/io/http.h"
#include "base/io/http_range.h"
#include "tests/fuzz/targets.h"

namespace muster::fuzz {
namespace {

constexpr std::size_t kMaxBodyBytes = 4'096;
constexpr std::size_t kMaxAnswerBytes = 8u << 20;  ///< of all the requests that one input can hold
constexpr std::chrono::seconds kLongestExchange{
    10};  ///< of an input that has said all that it says

/// Every request that reaches a handler keeps what the server promises to handlers.
Task<io::ServerResponse> handle(io::ServerRequest request) {
  const auto path = request.path();
  require(path.starts_with('/') && path.find('\0') == std::string::npos,
          "HTTP: a handler's path is absolute, without NUL");
  require((path + "/").find("/../") == std::string::npos,
          "HTTP: no handler sees a path that climbs");
  require(request.body.size() <= kMaxBodyBytes, "HTTP: a body has its bound");
  require(request.client_common_name.empty(), "HTTP: nobody is named without a certificate");
  co_return io::ServerResponse::text(200, request.method + " " + path + "\n");
}

class Served {
 public:
  Served() {
    file_ = std::filesystem::temp_directory_path() / ("muster-fuzz-" + std::to_string(::getpid()));
    std::ofstream(file_) << std::string(20'000, 'x');
    io::ServerOptions options;
    options.max_body_bytes = kMaxBodyBytes;
    auto started = io::startHttpServer(io_.get_executor(), options);
    require(started.has_value(), "the server starts");
    server_ = std::move(*started);
    auto send = [this](io::ServerRequest) -> Task<io::ServerResponse> {
      co_return io::ServerResponse::file({file_});
    };
    server_->addRoutes({{"GET", "/file", send},
                        {"GET", "/boot", handle},
                        {"POST", "/agent/", handle},
                        {"*", "/any/", handle}});
  }
  ~Served() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }

  /// One connection: all bytes, the end of what is sent, everything that is answered.
  void feed(std::string_view input) {
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(client >= 0, "a socket");
    // Each from an address of its own: ports do not run out, and no bound per address is met.
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(0x7f010000u | (next_address_++ & 0xffff));
    require(::bind(client, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0,
            "a client's address");
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server_->port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(::connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0,
            "the server takes a connection");
    const auto until = std::chrono::steady_clock::now() + kLongestExchange;
    std::size_t answered = 0;
    bool sent = false;
    while (true) {
      if (!sent) {
        const auto some = ::send(client, input.data(), input.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (some >= 0) input.remove_prefix(static_cast<std::size_t>(some));
        if (input.empty() || (some < 0 && errno != EAGAIN)) {
          ::shutdown(client, SHUT_WR);
          sent = true;
        }
      }
      io_.poll();
      std::array<char, 65'536> buffer{};
      const auto got = ::recv(client, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) break;
      if (got > 0) answered += static_cast<std::size_t>(got);
      require(answered <= kMaxAnswerBytes, "HTTP: answers have a bound");
      if (got < 0) {
        require(std::chrono::steady_clock::now() < until,
                "HTTP: a conversation whose client has ended ends");
        io_.run_one_for(std::chrono::milliseconds(1));
      }
    }
    const linger at_once{1, 0};
    (void)::setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(client);
    io_.poll();
  }

 private:
  asio::io_context io_;
  std::filesystem::path file_;
  std::unique_ptr<io::HttpServer> server_;
  std::uint32_t next_address_ = 1;
};

void http(std::string_view input) {
  static Served served;
  served.feed(input);
}

void httpFields(std::string_view input) {
  const std::string text(input);
  if (const auto url = io::Url::parse(input)) {
    const auto again = io::Url::parse(url->str());
    require(again && again->str() == url->str(), "a URL that was read is printed and read again");
  }
  (void)io::queryOf(input);
  require(io::pathOf("/" + io::percentEncode(input)) == "/" + text,
          "what is encoded is decoded to the same");
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{20'000}, ~std::uint64_t{0}}) {
    io::Piece piece;
    const auto kind = io::rangeOf(text, size, piece);
    if (kind == io::RangeKind::Unsatisfiable) continue;
    require(piece.offset <= size && piece.length <= size - piece.offset,
            "a range lies within its file");
    require(kind == io::RangeKind::Whole || piece.length > 0, "a part is not empty");
  }
}

constexpr std::array<std::string_view, 24> kHttpWords = {"GET /boot HTTP/1.1\r\n",
                                                         "POST /agent/v1/enrol HTTP/1.1\r\n",
                                                         "HEAD /file HTTP/1.1\r\n",
                                                         "Host: a\r\n",
                                                         "\r\n\r\n",
                                                         "Content-Length: 5\r\n",
                                                         "Content-Length: 18446744073709551616\r\n",
                                                         "Transfer-Encoding: chunked\r\n",
                                                         "0\r\n\r\n",
                                                         "Range: bytes=0-1\r\n",
                                                         "Range: bytes=-5\r\n",
                                                         "Expect: 100-continue\r\n",
                                                         "Connection: keep-alive\r\n",
                                                         "Connection: close\r\n",
                                                         "%2e%2e/",
                                                         "%00",
                                                         "/../",
                                                         "Upgrade: h2c\r\n",
                                                         "ffffffffffffffff\r\n",
                                                         "HTTP/1.0\r\n",
                                                         "PRI * HTTP/2.0\r\n",
                                                         "GET /file HTTP/1.1\r\n",
                                                         "PUT /any/x HTTP/1.1\r\n",
                                                         "\n"};
constexpr std::array<std::string_view, 12> kFieldWords = {
    "https://", "http://", "bytes=", "-",      ",", "[::1]",
    ":65536",   "%",       "%zz",    "?a=b&c", "+", "18446744073709551615"};

constexpr std::array kTargets = {
    Target{"http", 16'384, http, kHttpWords},
    Target{"http-fields", 4'096, httpFields, kFieldWords},
};

}  // namespace

std::span<const Target> httpTargets() { return kTargets; }

}  // namespace muster::fuzz
