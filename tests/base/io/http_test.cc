// SPDX-License-Identifier: Apache-2.0
// HTTP over loopback: the real client against the real server.
#include "base/io/http.h"
#include "base/async/deadline.h"
#include "base/clock.h"
#include "base/io/files.h"
#include "tests/base/io/http_handlers.h"
#include "tests/run_async.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <gmock/gmock.h>

#include <thread>

namespace muster::io {
namespace {

using test::runAsync;
using tcp = asio::ip::tcp;
using namespace std::chrono_literals;

Task<ServerResponse> echo(ServerRequest request) {
  co_return ServerResponse::text(200, request.method + " " + request.target + " " + request.body);
}

Task<ServerResponse> late(ServerRequest) {
  asio::steady_timer timer(co_await asio::this_coro::executor, 150ms);
  co_await timer.async_wait(asio::use_awaitable);
  co_return ServerResponse::text(200, "at last");
}

Task<ServerResponse> broken(ServerRequest) {
  throw std::runtime_error("boom");
  co_return ServerResponse::text(200, "");
}

class Http : public ::testing::Test {
 protected:
  void start(ServerOptions options = {}) {
    auto started = startHttpServer(io.get_executor(), options);
    ASSERT_TRUE(started) << started.error().str();
    server = std::move(*started);
    file = folder / "file.bin";
    for (int i = 0; i < 3'000'000; ++i) content += static_cast<char>(i * 7 + i / 251);
    ASSERT_TRUE(writeFileAtomic(file, content));
    server->addRoutes(
        {{"*", "/echo", echo},
         {"GET", "/late", late},
         {"GET", "/never", never},
         {"GET", "/broken", broken},
         {"GET", "/tree/", [](ServerRequest r) { return echo(std::move(r)); }},
         {"GET", "/tree/exact", broken},
         {"GET", "/file", [this](ServerRequest) { return sendFile(file); }},
         {"GET", "/overlaid", [this](ServerRequest) { return sendOverlaid(file); }},
         {"GET", "/missing", [this](ServerRequest) { return sendFile(folder / "nothing"); }}});
  }
  static Task<ServerResponse> sendFile(std::filesystem::path path) {
    co_return ServerResponse::file({path});
  }

  static constexpr std::size_t kOverlaidAt = 1'500'000;
  static Task<ServerResponse> sendOverlaid(std::filesystem::path path) {
    co_return ServerResponse::file(
        {path, "application/octet-stream",
         std::make_shared<const FileOverlay>(FileOverlay{kOverlaidAt, std::string(16384, '\n')})});
  }
  /// The same by a means that has nothing to do with the server.
  std::string overlaid() const {
    auto whole = content;
    return whole.replace(kOverlaidAt, 16384, std::string(16384, '\n'));
  }

  HttpRequest to(const std::string& target, const std::string& method = "GET") {
    HttpRequest request;
    request.method = method;
    request.url = {"http", "127.0.0.1", server->port(), target};
    request.timeout = 5s;
    return request;
  }
  Result<HttpResponse> send(HttpRequest request) {
    return runAsync(io, client->send(std::move(request)));
  }

  asio::io_context io;
  test::TempFolder folder;
  std::filesystem::path file;
  std::string content;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpClient> client = makeHttpClient();
};

TEST_F(Http, bytesThatLieOverAFileAreSentInItsPlaceWhateverIsAskedFor) {
  for (const bool encrypted : {false, true}) {
    content.clear();
    ServerOptions options;
    if (encrypted) options.identity = *selfSigned("here", {"127.0.0.1"});
    start(options);
    client = makeHttpClient({.accept_first = true});
    const auto ask = [&](const std::string& range) {
      auto request = to("/overlaid");
      request.url.scheme = encrypted ? "https" : "http";
      if (!range.empty()) request.headers["Range"] = "bytes=" + range;
      auto answer = send(std::move(request));
      EXPECT_TRUE(answer) << answer.error().str();
      return answer ? answer->body : std::string();
    };
    EXPECT_TRUE(ask("") == overlaid());
    // Around its first and its last byte, in it, over all of it, before and behind.
    const std::pair<std::size_t, std::size_t> pieces[] = {
        {1'499'990, 1'500'010}, {1'500'000, 1'500'000},
        {1'499'999, 1'499'999}, {1'516'383, 1'516'384},
        {1'516'384, 1'516'390}, {1'502'000, 1'503'000},
        {1'400'000, 1'600'000}, {0, 0},
        {2'999'999, 2'999'999}};
    for (const auto& [from, to] : pieces)
      EXPECT_TRUE(ask(fmt::format("{}-{}", from, to)) == overlaid().substr(from, to - from + 1))
          << from << "-" << to;
    auto head = to("/overlaid", "HEAD");
    head.url.scheme = encrypted ? "https" : "http";
    const auto answer = send(head);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->header("Content-Length"), "3000000");
  }
}

TEST_F(Http, carriesMethodTargetAndBody) {
  start();
  auto request = to("/echo?a=1", "POST");
  request.body = "hello";
  auto answer = send(request);
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "POST /echo?a=1 hello");
  EXPECT_EQ(answer->header("content-type"), "text/plain; charset=utf-8");
}

/// A secret from a file may hold anything.
TEST_F(Http, aLineEndInAHeaderIsRefusedAndNothingIsSent) {
  start();
  for (const auto& value :
       std::vector<std::string>{std::string("tok\r\nX-Evil: 1"), std::string("tok\nX-Evil: 1"),
                                std::string("a\0b", 3)}) {
    auto request = to("/echo");
    request.headers["Authorization"] = "Bearer " + value;
    const auto answer = send(request);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), ErrorCode::InvalidInput);
    EXPECT_THAT(answer.error().str(), ::testing::HasSubstr("the header Authorization"));
  }
}

/// Its kept-alive connections belong to the context that ends here; the client itself goes on.
TEST_F(Http, clientOutlivesTheContextThatItWorkedOn) {
  start();
  {
    asio::io_context own;
    bool done = false;
    asio::co_spawn(
        own, client->send(to("/echo")),
        [&done](std::exception_ptr, Result<HttpResponse> answer) { done = answer.has_value(); });
    for (const auto until = std::chrono::steady_clock::now() + 10s;
         !done && std::chrono::steady_clock::now() < until; own.restart(), io.restart())
      if (own.poll() + io.poll() == 0) std::this_thread::yield();
    ASSERT_TRUE(done);
  }
  EXPECT_EQ(send(to("/echo"))->status, 200);
}

TEST_F(Http, longestPathWinsAndUnknownOnesSaySo) {
  start();
  EXPECT_EQ(send(to("/tree/a/b"))->body, "GET /tree/a/b ");
  EXPECT_EQ(send(to("/tree/exact"))->status, 500);
  EXPECT_EQ(send(to("/nowhere"))->status, 404);
  EXPECT_EQ(send(to("/late", "POST"))->status, 405);
  EXPECT_EQ(send(to("/broken"))->status, 500);
  EXPECT_EQ(send(to("/tree/../etc/passwd"))->status, 400);
  EXPECT_EQ(send(to("/tree/%2e%2e/etc/passwd"))->status, 400);
  EXPECT_EQ(send(to("/tree/..a"))->status, 200);
}

TEST_F(Http, sendsFilesWholeAndInRanges) {
  start();
  EXPECT_EQ(send(to("/file"))->body, content);
  const auto ranged = [&](const std::string& range) {
    auto request = to("/file");
    request.headers["Range"] = range;
    return *send(request);
  };
  auto part = ranged("bytes=10-19");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, content.substr(10, 10));
  EXPECT_EQ(part.header("Content-Range"), "bytes 10-19/3000000");
  EXPECT_EQ(ranged("bytes=2999990-").body, content.substr(2999990));
  EXPECT_EQ(ranged("bytes=2999990-99999999").body, content.substr(2999990));
  EXPECT_EQ(ranged("bytes=-5").body, content.substr(2999995));
  EXPECT_EQ(ranged("bytes=3000000-").status, 416);
  EXPECT_EQ(ranged("bytes=3000000-").header("Content-Range"), "bytes */3000000");
  EXPECT_EQ(ranged("bytes=-0").status, 416);
  for (const auto* ignored : {"bytes=5-2", "bytes=a-b", "bytes=0-1,4-5", "lines=1-2", "bytes=-",
                              "bytes=99999999999999999999-"}) {
    EXPECT_EQ(ranged(ignored).status, 200) << ignored;
  }
  EXPECT_EQ(send(to("/missing"))->status, 404);
  auto head = send(to("/file", "HEAD"));
  EXPECT_EQ(head->header("Content-Length"), "3000000");
  EXPECT_TRUE(head->body.empty());
}

TEST_F(Http, fetchStreamsAndStopsWhenTheSinkSaysSo) {
  start();
  std::string got;
  std::size_t largest = 0;
  auto sink = [&](std::string_view piece) -> Result<void> {
    got += piece;
    largest = std::max(largest, piece.size());
    return {};
  };
  auto done = runAsync(io, client->fetch(to("/file"), sink));
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(got, content);
  EXPECT_LE(largest, 256u << 10);
  auto full = [](std::string_view) -> Result<void> {
    return fail(ErrorCode::Corrupt, "disk full");
  };
  auto stopped = runAsync(io, client->fetch(to("/file"), full));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().text(), "disk full");
  auto missing = runAsync(io, client->fetch(to("/nowhere"), full));
  ASSERT_TRUE(missing) << "an error page is no download";
  EXPECT_EQ(missing->status, 404);
}

TEST_F(Http, longPollIsAnsweredLate) {
  start();
  EXPECT_EQ(send(to("/late"))->body, "at last");
}

TEST_F(Http, silentServerIsATimeout) {
  start();
  auto request = to("/never");
  request.timeout = 100ms;
  auto answer = send(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Timeout);
  EXPECT_TRUE(answer.error().canRetry());
  request.timeout = 30s;
  SystemClock clock;
  auto limited = runAsync(io, withDeadline(clock, 100ms, "the poll", client->send(request)));
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code(), ErrorCode::Timeout);
}

TEST_F(Http, oversizeBodiesAreRefusedOnBothSides) {
  ServerOptions small;
  small.max_body_bytes = 1000;
  start(small);
  auto request = to("/echo", "POST");
  request.body.assign(1001, 'x');
  EXPECT_EQ(send(request)->status, 413);
  auto large = to("/file");
  large.max_body_bytes = 1000;
  auto answer = send(large);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Corrupt);
}

TEST_F(Http, refusesConnectionsAfterStop) {
  start();
  EXPECT_TRUE(send(to("/echo")));
  const auto request = to("/echo");
  server->stop();
  auto answer = send(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Unavailable);
  server->stop();
}

TEST_F(Http, stopEndsHandlersThatWait) {
  start();
  auto stopper = [](asio::io_context& context, HttpServer& victim) -> Task<void> {
    asio::steady_timer timer(context, 100ms);
    co_await timer.async_wait(asio::use_awaitable);
    victim.stop();
  };
  asio::co_spawn(io, stopper(io, *server), [](std::exception_ptr) {});
  auto answer = send(to("/never"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Unavailable);
  io.restart();
  EXPECT_LT(io.run_for(5s), 100u) << "nothing is left that waits";
  EXPECT_TRUE(io.stopped());
}

TEST_F(Http, sameAddressTwiceIsAConflict) {
  start();
  ServerOptions same;
  same.port = server->port();
  auto second = startHttpServer(io.get_executor(), same);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
}

/// A connection that nobody uses gives way; its client opens another one when it needs it.
TEST_F(Http, connectionsAreLimited) {
  ServerOptions one;
  one.max_connections = 1;
  start(one);
  ASSERT_TRUE(send(to("/echo")));  // kept alive by the first client
  auto other = makeHttpClient();
  EXPECT_TRUE(runAsync(io, other->send(to("/echo"))));
  EXPECT_TRUE(send(to("/echo")));
  EXPECT_EQ(server->load().dropped_connections, 2u);
  EXPECT_EQ(server->load().connections, 1u);
}

TEST(Url, brokenEscapeStaysAsItIs) {
  EXPECT_EQ(pathOf("/a%2Fb"), "/a/b");
  for (const auto* broken : {"/a%-1", "/a%+1", "/a%zz", "/a%1", "/a%"})
    EXPECT_EQ(pathOf(broken), broken);
}

TEST(Url, parsesAndPrints) {
  auto url = Url::parse("HTTPS://bmc7.example:8443/redfish/v1?x=1#part");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->str(), "https://bmc7.example:8443/redfish/v1?x=1");
  EXPECT_EQ(url->origin(), "https://bmc7.example:8443");
  EXPECT_EQ(Url::parse("http://10.0.0.1")->str(), "http://10.0.0.1:80/");
  EXPECT_EQ(Url::parse("https://[fd00::1]/a")->origin(), "https://[fd00::1]:443");
  EXPECT_EQ(Url::parse("http://h?q=1")->target, "/?q=1");
  for (const auto* bad :
       {"", "bmc", "ftp://x/", "http://", "http://:80/", "http://h:0/", "http://h:65536/",
        "http://h:8x/", "http://[::1/", "http://u:p@h/", "http://h/a b", "http://h/\r\nHost: x",
        "http://[[1]:80/", "http://[bmc7]/", "http://a]b/"}) {
    EXPECT_FALSE(Url::parse(bad)) << bad;
  }
}

TEST(Url, queryAndPathAreDecoded) {
  const auto query = queryOf("/boot/ipxe?mac=52%3A54%3a00&x=a+b&flag&bad=%zz&");
  EXPECT_THAT(query, ::testing::UnorderedElementsAre(
                         ::testing::Pair("mac", "52:54:00"), ::testing::Pair("x", "a b"),
                         ::testing::Pair("flag", ""), ::testing::Pair("bad", "%zz")));
  EXPECT_EQ(pathOf("/a%20b/c?d=e"), "/a b/c");
  EXPECT_EQ(percentEncode("a b/ü"), "a%20b%2F%C3%BC");
}

}  // namespace
}  // namespace muster::io
