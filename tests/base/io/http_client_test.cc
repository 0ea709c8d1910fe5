// SPDX-License-Identifier: Apache-2.0
// The client against servers that misbehave.
#include "base/io/http.h"
#include "tests/run_async.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <gtest/gtest.h>

namespace muster::io {
namespace {

using test::runAsync;
using tcp = asio::ip::tcp;
using namespace std::chrono_literals;

/// A server that answers each connection with fixed bytes, then closes. Counts requests.
class Scripted {
 public:
  Scripted(asio::io_context& io, std::vector<std::string> answers)
      : acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    asio::co_spawn(io, serve(std::move(answers)), [](std::exception_ptr) {});
  }
  HttpRequest request(const std::string& method = "GET") const {
    HttpRequest r;
    r.method = method;
    r.url = {"http", "127.0.0.1", acceptor_.local_endpoint().port(), "/"};
    r.timeout = 2s;
    return r;
  }
  int connections = 0;

 private:
  Task<void> serve(std::vector<std::string> answers) {
    for (const auto& answer : answers) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      ++connections;
      std::string head;
      co_await asio::async_read_until(socket, asio::dynamic_buffer(head), "\r\n\r\n",
                                      asio::use_awaitable);
      co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
      if (answer.empty()) socket.set_option(tcp::socket::linger(true, 0));  // RST
    }
  }
  tcp::acceptor acceptor_;
};

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST(HttpClientFaults, resetIsUnavailable) {
  asio::io_context io;
  Scripted server(io, {""});
  auto client = makeHttpClient();
  auto answer = runAsync(io, client->send(server.request()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Unavailable);
}

TEST(HttpClientFaults, halfABodyIsUnavailable) {
  asio::io_context io;
  Scripted server(io, {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"});
  auto client = makeHttpClient();
  auto answer = runAsync(io, client->send(server.request()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Unavailable);
}

TEST(HttpClientFaults, garbageIsCorrupt) {
  asio::io_context io;
  Scripted server(io, {"SSH-2.0-OpenSSH_9.2\r\n\r\n"});
  auto client = makeHttpClient();
  auto answer = runAsync(io, client->send(server.request()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Corrupt);
  EXPECT_FALSE(answer.error().canRetry());
}

TEST(HttpClientFaults, connectionClosedMeanwhileIsOpenedAgain) {
  asio::io_context io;
  Scripted server(io, {kOk, kOk, kOk});  // says keep-alive, closes all the same
  auto client = makeHttpClient();
  for (const auto* method : {"GET", "GET", "POST"}) {
    auto answer = runAsync(io, client->send(server.request(method)));
    ASSERT_TRUE(answer) << answer.error().str();
    EXPECT_EQ(answer->body, "ok");
    io.restart();
    io.run_for(20ms);  // the server's close arrives
  }
  EXPECT_EQ(server.connections, 3);
}

TEST(HttpClientFaults, skipsInformationalAnswers) {
  asio::io_context io;
  Scripted server(io, {std::string("HTTP/1.1 100 Continue\r\n\r\n") + kOk});
  auto client = makeHttpClient();
  auto answer = runAsync(io, client->send(server.request("POST")));
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(answer->status, 200);
}

TEST(HttpClientFaults, unknownHostIsUnavailable) {
  auto client = makeHttpClient();
  HttpRequest request;
  request.url = *Url::parse("http://no-such-host.invalid/");
  auto answer = runAsync(client->send(request));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Unavailable);
}

}  // namespace
}  // namespace muster::io
