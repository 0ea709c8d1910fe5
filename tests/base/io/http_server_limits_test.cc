// SPDX-License-Identifier: Apache-2.0
// A server against clients that send too much, too slowly, or what two programs would read
// differently.
#include "base/io/http.h"
#include "tests/base/io/http_handlers.h"
#include "tests/run_async.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>

namespace muster::io {
namespace {

using tcp = asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

Task<ServerResponse> bodySize(ServerRequest request) {
  co_return ServerResponse::text(200, std::to_string(request.body.size()));
}

/// A caller who has no certificate, with the word in a header instead.
Admission onlyFriends(const ServerRequest& head) {
  const auto word = head.headers.find("Friend");
  if (word == head.headers.end()) return {0, ServerResponse::text(401, "who are you?\n")};
  return {16u << 20, std::nullopt};
}

class HttpLimits : public ::testing::Test {
 public:  // for the coroutines of the tests
  void start(ServerOptions options = {}) {
    auto started = startHttpServer(io.get_executor(), options);
    ASSERT_TRUE(started) << started.error().str();
    server = std::move(*started);
    server->addRoutes({{"POST", "/small", bodySize,
                        [](const ServerRequest&) { return Admission{4096, std::nullopt}; }},
                       {"POST", "/friends", bodySize, onlyFriends},
                       {"POST", "/never", never,
                        [](const ServerRequest&) { return Admission{16u << 20, std::nullopt}; }},
                       {"GET", "/tree/", bodySize}});
  }
  Async<tcp::socket> connectTo(std::string from = "127.0.0.1") {
    tcp::socket socket(co_await asio::this_coro::executor);
    socket.open(tcp::v4());
    socket.bind({asio::ip::make_address(from), 0});
    error_code error;
    co_await socket.async_connect({asio::ip::address_v4::loopback(), server->port()},
                                  asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return fail(ErrorCode::Unavailable, error.message());
    co_return std::move(socket);
  }
  /// All that the server says until it closes.
  static Task<std::string> listen(tcp::socket& socket) {
    std::string heard;
    error_code error;
    std::array<char, 4096> window{};
    while (!error) {
      const auto bytes = co_await socket.async_read_some(
          asio::buffer(window), asio::redirect_error(asio::use_awaitable, error));
      heard.append(window.data(), bytes);
    }
    co_return heard;
  }
  Async<std::string> exchange(std::string bytes, std::string from = "127.0.0.1") {
    CO_TRY(socket, co_await connectTo(from));
    error_code error;
    co_await asio::async_write(socket, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, error));
    co_return co_await listen(socket);
  }
  std::string ask(std::string bytes, std::string from = "127.0.0.1") {
    auto heard = test::runAsync(io, exchange(std::move(bytes), std::move(from)));
    return heard ? *heard : heard.error().str();
  }

  asio::io_context io;
  std::unique_ptr<HttpServer> server;
};

/// The words say what is wrong with which part of the path, and what is expected.
TEST_F(HttpLimits, saysWhatIsWrongWithAPath) {
  start();
  for (const auto& [path, words] :
       {std::pair("/tree/a%2Fb", "encoded \"/\""), std::pair("/tree/../secret", "a part \"..\""),
        std::pair("//tree/a", "begins with \"//\""), std::pair("tree", "does not begin with \"/\""),
        std::pair("/tree/a\\b", "a backslash"), std::pair("/tree/%5ca", "a backslash"),
        std::pair("/tree/%0aX", "line break or control character"),
        std::pair("/tree/a#b", "write %23")})
    EXPECT_THAT(
        ask(std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
        HasSubstr(words))
        << path;
}

TEST_F(HttpLimits, refusesWhatTwoProgramsWouldReadDifferently) {
  start();
  const std::string end = "\r\nHost: x\r\nConnection: close\r\n\r\n",
                    post = "POST /small HTTP/1.1\r\nHost: x\r\n";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"400", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"400", post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"},
      {"400", post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"},
      {"400", post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"},
      {"400", post + "Content-Length: 3, 3\r\n\r\nabc"},
      {"400", post + "Content-Length: +3\r\n\r\nabc"},
      {"400", post + "Content-Length: -1\r\n\r\n"},
      {"400", post + "Content-Length: 99999999999999999999999\r\n\r\n"},
      {"501", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {"501", post + "Transfer-Encoding: identity\r\n\r\n"},
      {"501", post + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"},
      {"400", "POST /small HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"400", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"},
      {"400", post + "X: a\r\n folded\r\n\r\n"},
      {"400", post + "X: a\r\n\tfolded\r\n\r\n"},
      {"400", "GET /tree/a HTTP/1.1\nHost: x\n\n"},
      {"400", "GET /tree/a HTTP/1.1\r\nHost: x\nContent-Length: 0\r\n\r\n"},
      {"400", "GET /tree/a HTTP/1.1\r\nHost: x\rContent-Length: 0\r\n\r\n"},
      {"400", "GET /tree/a HTTP/1.1\r\nHost: x" + std::string(1, '\0') + "y\r\n\r\n"},
      {"400", "GET /tree/a HTTP/1.1\r\nHost: x\x1b[31m\r\n\r\n"},
      {"400", "GET /tree/a HTTP/1.1\r\nHost : x\r\n\r\n"},
      {"400", "GET /tree/a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
      {"400", "GET http://127.0.0.1/tree/a HTTP/1.1" + end},
      {"400", "GET //127.0.0.1/tree/a HTTP/1.1" + end},
      {"400", "CONNECT 127.0.0.1:22 HTTP/1.1" + end},
      {"400", "OPTIONS * HTTP/1.1" + end},
      {"400", "GET /tree/../secret HTTP/1.1" + end},
      {"400", "GET /tree/%2e%2e/secret HTTP/1.1" + end},
      {"400", "GET /tree/.. HTTP/1.1" + end},
      {"400", "GET /tree/..%2fsecret HTTP/1.1" + end},
      {"400", "GET /tree%2Fa HTTP/1.1" + end},
      {"400", "GET /tree/..\\secret HTTP/1.1" + end},
      {"400", "GET /tree/%5c..%5csecret HTTP/1.1" + end},
      {"400", "GET /tree/%00 HTTP/1.1" + end},
      {"400", "GET /tree/%0d%0aX:%20y HTTP/1.1" + end},
      {"400", "GET /tree/a HTTP/9.9" + end},
      {"400", "\r\n\r\n"},
      {"414", "GET /tree/" + std::string(9000, 'a')},
      {"414", std::string(9000, 'G')},
      {"431", "GET /tree/a HTTP/1.1\r\nHost: x\r\nX: " + std::string(40'000, 'a') + "\r\n\r\n"},
  };
  for (const auto& [status, request] : bad)
    EXPECT_THAT(ask(request), StartsWith("HTTP/1.1 " + status)) << "to: " << request.substr(0, 120);
  std::string many = "GET /tree/a HTTP/1.1\r\nHost: muster\r\n";
  for (int i = 0; i < 101; ++i) many += "X: y\r\n";
  EXPECT_THAT(ask(many + "\r\n"), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask("GET /tree/a?x=../b HTTP/1.1" + end), StartsWith("HTTP/1.1 200"))
      << "a query is no path";
  EXPECT_THAT(ask("GET /tree/a..b/..c/d.. HTTP/1.1" + end), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(
      ask(post + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
      HasSubstr("\r\n\r\n3"));
}

/// Two requests in one packet are two requests, and what follows a refused body is not a request.
TEST_F(HttpLimits, readsRequestsThatComeTogetherAndNothingBehindARefusal) {
  start();
  const std::string one = "POST /small HTTP/1.1\r\nHost: muster\r\nContent-Length: 3\r\n\r\nabc",
                    last = "GET /tree/a HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n";
  const auto both = ask(one + last);
  EXPECT_THAT(both, HasSubstr("\r\n\r\n3HTTP/1.1 200"));
  const auto refused =
      ask("POST /nowhere HTTP/1.1\r\nHost: muster\r\nContent-Length: 5000\r\n\r\n" + last + last);
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 404"));
  EXPECT_EQ(refused.find("HTTP/1.1", 1), std::string::npos) << refused;
}

/// The answer is there although not one byte of the body was sent.
TEST_F(HttpLimits, answersBeforeTheBody) {
  start();
  const std::string huge = "Content-Length: 16777216\r\n\r\n";
  EXPECT_THAT(ask("POST /nowhere HTTP/1.1\r\nHost: muster\r\n" + huge), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask("PUT /small HTTP/1.1\r\nHost: muster\r\n" + huge), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask("POST /small HTTP/1.1\r\nHost: muster\r\n" + huge), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(ask("POST /friends HTTP/1.1\r\nHost: muster\r\n" + huge), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(ask("POST /small HTTP/1.1\r\nHost: muster\r\nExpect: 100-continue\r\n" + huge),
              StartsWith("HTTP/1.1 413"))
      << "no 100 before";
  EXPECT_THAT(
      ask("POST /small HTTP/1.1\r\nHost: muster\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n" +
          std::string(0x2000, 'x')),
      StartsWith("HTTP/1.1 413"));
  EXPECT_EQ(server->load().body_bytes, 0u);
}

TEST_F(HttpLimits, halfSentBodiesHoldTheBudgetAndNoMore) {
  ServerOptions options;
  options.max_bodies_bytes = 8u << 20;
  start(options);
  auto flood = [](HttpLimits& test) -> Async<std::size_t> {
    const std::string half(4u << 20, 'x');
    std::vector<tcp::socket> held;
    std::size_t most = 0;
    for (int i = 0; i < 100; ++i) {
      CO_TRY(socket, co_await test.connectTo(fmt::format("127.0.0.{}", 2 + i % 50)));
      const std::string head =
          "POST /friends HTTP/1.1\r\nHost: muster\r\nFriend: yes\r\nContent-Length: "
          "16777216\r\n\r\n";
      error_code error;
      co_await asio::async_write(socket, asio::buffer(head + half.substr(0, 1500 * 1024)),
                                 asio::redirect_error(asio::use_awaitable, error));
      most = std::max(most, test.server->load().body_bytes);
      held.push_back(std::move(socket));
    }
    const auto honest = co_await test.exchange(
        "POST /small HTTP/1.1\r\nHost: muster\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
        "127.0.0.99");
    if (!honest || honest->find("\r\n\r\n3") == std::string::npos)
      co_return fail(ErrorCode::Unavailable, "an honest small request was refused");
    const auto late = co_await test.exchange(
        "POST /friends HTTP/1.1\r\nHost: muster\r\nFriend: yes\r\nContent-Length: "
        "16777216\r\n\r\n" +
            half,
        "127.0.0.98");
    if (!late || !late->starts_with("HTTP/1.1 503"))
      co_return fail(ErrorCode::Internal,
                     late ? "not refused: " + late->substr(0, 40) : late.error().str());
    co_return most;
  };
  const auto most = test::runAsync(io, flood(*this), 60s);
  ASSERT_TRUE(most) << most.error().str();
  EXPECT_GT(*most, 4u << 20) << "they were read";
  EXPECT_LE(*most, 8u << 20);
  for (const auto until = std::chrono::steady_clock::now() + 10s;
       server->load().body_bytes > 0 && std::chrono::steady_clock::now() < until; io.restart())
    io.run_for(10ms);
  EXPECT_EQ(server->load().body_bytes, 0u) << "given back";
}

/// While a handler works on a body it still counts.
TEST_F(HttpLimits, aBodyThatIsWorkedOnCounts) {
  start();
  auto hold = [](HttpLimits& test) -> Async<std::size_t> {
    CO_TRY(socket, co_await test.connectTo());
    const std::string request =
        "POST /never HTTP/1.1\r\nHost: muster\r\nContent-Length: 1000000\r\n\r\n" +
        std::string(1'000'000, 'x');
    co_await asio::async_write(socket, asio::buffer(request), asio::use_awaitable);
    asio::steady_timer turn(co_await asio::this_coro::executor);
    for (int i = 0; i < 1000 && test.server->load().body_bytes < 1'000'000; ++i) {
      turn.expires_after(10ms);
      co_await turn.async_wait(asio::use_awaitable);
    }
    co_return test.server->load().body_bytes;
  };
  const auto held = test::runAsync(io, hold(*this));
  ASSERT_TRUE(held);
  EXPECT_GE(*held, 1'000'000u);
  EXPECT_LT(*held, 1'100'000u);
}

TEST_F(HttpLimits, aByteNowAndThenDoesNotHoldAConnection) {
  ServerOptions options;
  options.head_timeout = options.body_timeout = 300ms;
  start(options);
  const auto trickle = [](HttpLimits& test, std::string first,
                          std::string rest) -> Async<std::chrono::milliseconds> {
    CO_TRY(socket, co_await test.connectTo());
    const auto began = std::chrono::steady_clock::now();
    error_code error;
    co_await asio::async_write(socket, asio::buffer(first),
                               asio::redirect_error(asio::use_awaitable, error));
    asio::steady_timer turn(co_await asio::this_coro::executor);
    for (std::size_t i = 0; !error && i < 400; ++i) {
      turn.expires_after(20ms);
      co_await turn.async_wait(asio::use_awaitable);
      const std::string byte(1, rest[i % rest.size()]);
      co_await asio::async_write(socket, asio::buffer(byte),
                                 asio::redirect_error(asio::use_awaitable, error));
    }
    if (!error) co_return fail(ErrorCode::Timeout, "it is still connected");
    co_return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began);
  };
  for (const auto* first :
       {"GET /tree/a HTTP/1.1\r\nHost: muster\r\nX: ",
        "POST /small HTTP/1.1\r\nHost: muster\r\nContent-Length: 4000\r\n\r\n"}) {
    const auto held = test::runAsync(io, trickle(*this, first, "a"));
    ASSERT_TRUE(held) << first << held.error().str();
    EXPECT_GE(*held, 300ms);
  }
  const auto chunks = test::runAsync(
      io,
      trickle(*this, "POST /small HTTP/1.1\r\nHost: muster\r\nTransfer-Encoding: chunked\r\n\r\n",
              "1\r\na\r\n"));
  EXPECT_TRUE(chunks) << chunks.error().str();
}

/// One address opens as many as the server takes, and then another one wants to boot.
TEST_F(HttpLimits, idleConnectionsOfOneAddressKeepNobodyOut) {
  ServerOptions options;
  options.max_connections = 4096;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 10'000);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur < 10'000) options.max_connections = files.rlim_cur / 4;
  start(options);
  auto crowd = [](HttpLimits& test, std::size_t count) -> Async<std::chrono::milliseconds> {
    std::vector<tcp::socket> held;
    for (std::size_t i = 0; i < count + 100; ++i) {
      CO_TRY(socket, co_await test.connectTo("127.0.0.1"));
      held.push_back(std::move(socket));
    }
    const auto began = std::chrono::steady_clock::now();
    CO_TRY(answer,
           co_await test.exchange(
               "GET /tree/a HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n", "127.0.0.2"));
    if (!answer.starts_with("HTTP/1.1 200"))
      co_return fail(ErrorCode::Unavailable, "refused: " + answer);
    co_return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began);
  };
  const auto took = test::runAsync(io, crowd(*this, options.max_connections), 60s);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(took) << took.error().str();
  EXPECT_LT(*took, 2s);
  EXPECT_GE(server->load().dropped_connections, 100u);
  EXPECT_LE(server->load().connections, options.max_connections);
}

/// More than its share of one address: its own are closed, the one that waited longest first.
TEST_F(HttpLimits, anAddressHasACapOfItsOwn) {
  ServerOptions options;
  options.max_connections_per_address = 3;
  start(options);
  auto crowd = [](HttpLimits& test) -> Async<std::size_t> {
    CO_TRY(first, co_await test.connectTo());
    std::vector<tcp::socket> more;
    for (int i = 0; i < 4; ++i) {
      CO_TRY(socket, co_await test.connectTo());
      more.push_back(std::move(socket));
    }
    co_await listen(first);  // ends, as it was closed
    const std::string request = "GET /tree/a HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n";
    co_await asio::async_write(more.back(), asio::buffer(request), asio::use_awaitable);
    const auto answer = co_await listen(more.back());
    if (!answer.starts_with("HTTP/1.1 200"))
      co_return fail(ErrorCode::Internal, "the newest was closed");
    co_return test.server->load().dropped_connections;
  };
  const auto dropped = test::runAsync(io, crowd(*this));
  ASSERT_TRUE(dropped) << dropped.error().str();
  EXPECT_EQ(*dropped, 2u);
}

/// Whose requests are worked on is not closed for somebody who has as many.
TEST_F(HttpLimits, refusesTheNewOneWhenNobodyWaits) {
  ServerOptions options;
  options.max_connections = options.max_connections_per_address = 2;
  start(options);
  auto crowd = [](HttpLimits& test) -> Async<std::string> {
    std::vector<tcp::socket> working;
    const std::string request =
        "POST /never HTTP/1.1\r\nHost: muster\r\nContent-Length: 1\r\n\r\nx";
    for (int i = 0; i < 2; ++i) {
      CO_TRY(socket, co_await test.connectTo());
      co_await asio::async_write(socket, asio::buffer(request), asio::use_awaitable);
      working.push_back(std::move(socket));
    }
    asio::steady_timer turn(co_await asio::this_coro::executor, 200ms);
    co_await turn.async_wait(asio::use_awaitable);
    co_return co_await test.exchange(
        "GET /tree/a HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n");
  };
  const auto answer = test::runAsync(io, crowd(*this));
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, "");
  EXPECT_EQ(server->load().refused_connections, 1u);
}

TEST_F(HttpLimits, staysBelowTheLimitOfDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 200;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  ServerOptions options;
  options.max_connections = 4096;
  start(options);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  auto crowd = [](HttpLimits& test) -> Async<std::size_t> {
    std::vector<tcp::socket> held;
    for (int i = 0; i < 300; ++i) {
      CO_TRY(socket, co_await test.connectTo());
      held.push_back(std::move(socket));
    }
    CO_TRY(answer,
           co_await test.exchange(
               "GET /tree/a HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n", "127.0.0.2"));
    if (!answer.starts_with("HTTP/1.1 200")) co_return fail(ErrorCode::Unavailable, "refused");
    co_return test.server->load().connections;
  };
  const auto open = test::runAsync(io, crowd(*this));
  ASSERT_TRUE(open) << open.error().str();
  EXPECT_LE(*open, 100u) << "half of a small limit is for all else";
  EXPECT_GE(*open, 90u);
}

}  // namespace
}  // namespace muster::io
