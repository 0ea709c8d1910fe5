// SPDX-License-Identifier: Apache-2.0
// Bodies that are made while they are sent, read by curl and by clients that do not read.
#include "base/io/http.h"

#include "base/io/process.h"
#include "tests/run_async.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <gmock/gmock.h>

#include <thread>

namespace muster::io {
namespace {

using namespace std::chrono_literals;
using tcp = asio::ip::tcp;

class HttpStream : public ::testing::Test {
 protected:
  void start(std::chrono::seconds piece_timeout = 10s) {
    auto started = startHttpServer(io.get_executor(), {});
    ASSERT_TRUE(started) << started.error().str();
    server = std::move(*started);
    server->addRoutes(
        {{"GET", "/three", [piece_timeout](ServerRequest) { return three(piece_timeout); }},
         {"GET", "/broken", [](ServerRequest) { return broken(); }},
         {"GET", "/endless",
          [this, piece_timeout](ServerRequest) { return endless(piece_timeout); }}});
  }
  static Task<ServerResponse> three(std::chrono::seconds piece_timeout) {
    auto count = std::make_shared<int>(0);
    co_return ServerResponse::stream({"text/plain",
                                      [count]() -> Task<std::optional<std::string>> {
                                        asio::steady_timer timer(co_await asio::this_coro::executor,
                                                                 5ms);
                                        co_await timer.async_wait(asio::use_awaitable);
                                        if (++*count == 2)
                                          co_return std::string();  // nothing to send is no end
                                        if (*count > 4) co_return std::nullopt;
                                        co_return fmt::format("piece {}\n", *count);
                                      },
                                      piece_timeout});
  }
  static Task<ServerResponse> broken() {
    auto count = std::make_shared<int>(0);
    co_return ServerResponse::stream({"text/plain", [count]() -> Task<std::optional<std::string>> {
                                        if (++*count > 1) throw std::runtime_error("boom");
                                        co_return std::string("one\n");
                                      }});
  }
  Task<ServerResponse> endless(std::chrono::seconds piece_timeout) {
    co_return ServerResponse::stream({"text/plain",
                                      [this]() -> Task<std::optional<std::string>> {
                                        ++made;
                                        co_return std::string(64u << 10, 'x');
                                      },
                                      piece_timeout});
  }
  ProcessExit curl(std::vector<std::string> words) {
    words.insert(words.begin(), {"-sS", "--max-time", "10"});
    words.back() = fmt::format("http://127.0.0.1:{}{}", server->port(), words.back());
    ProcessExit out{-1, "", ""};
    std::thread client([&] {
      if (auto ended = runBlocking({"curl", words})) out = *ended;
      asio::post(io, [this] { io.stop(); });
    });
    io.restart();
    io.run_for(15s);
    client.join();
    return out;
  }

  asio::io_context io;
  std::unique_ptr<HttpServer> server;
  std::size_t made = 0;
};

TEST_F(HttpStream, comesInPiecesAndEnds) {
  start();
  const auto answer = curl({"-i", "/three"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, ::testing::HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(answer.out, ::testing::HasSubstr("piece 1\npiece 3\npiece 4\n"));
}

TEST_F(HttpStream, toAnHttp10ClientEndsWithTheConnection) {
  start();
  const auto answer = curl({"-i", "--http1.0", "/three"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, ::testing::Not(::testing::HasSubstr("chunked")));
  EXPECT_THAT(answer.out, ::testing::EndsWith("piece 1\npiece 3\npiece 4\n"));
}

TEST_F(HttpStream, theConnectionServesTheNextRequest) {
  start();
  const auto url = fmt::format("http://127.0.0.1:{}/three", server->port());
  const auto answer = curl({"-v", url, "/three"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.err, ::testing::ContainsRegex("Re-using existing (http: )?connection"));
}

/// A body that was cut must not look whole.
TEST_F(HttpStream, thatFailsIsNoWholeBody) {
  start();
  const auto answer = curl({"/broken"});
  EXPECT_EQ(answer.code, 18) << "curl: partial file; " << answer.err;
  EXPECT_EQ(answer.out, "one\n");
}

/// What nobody takes is not made, and who takes nothing is dropped.
TEST_F(HttpStream, isMadeAsItIsTaken) {
  start(1s);
  tcp::socket socket(io);
  socket.connect({asio::ip::make_address("127.0.0.1"), server->port()});
  asio::write(socket, asio::buffer(std::string("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")));
  io.run_for(500ms);
  const auto stalled = made;
  EXPECT_GT(stalled, 0u);
  EXPECT_LT(stalled, 200u) << "64 KiB each: what the kernel's buffers take";
  io.restart();
  io.run_for(300ms);
  EXPECT_LE(made, stalled + 1);
  for (int i = 0; i < 50 && server->load().connections > 0; ++i) {
    io.restart();
    io.run_for(100ms);
  }
  EXPECT_EQ(server->load().connections, 0u) << "dropped after its second";
}

}  // namespace
}  // namespace muster::io
