// SPDX-License-Identifier: Apache-2.0
// The controller's two listeners. Their ports are fixed, so every test process takes a loopback
// address of its own.
#include "gateway/http_listeners.h"
#include "base/ip_address.h"
#include "inventory/model/networks.h"
#include "tests/run_async.h"

#include <fmt/format.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include <sys/resource.h>
#include <unistd.h>

namespace muster::gateway {
namespace {

Task<io::ServerResponse> plain(io::ServerRequest) {
  co_return io::ServerResponse::text(200, "plain");
}
Task<io::ServerResponse> whoAmI(io::ServerRequest request) {
  co_return io::ServerResponse::text(200, request.client_common_name);
}

class ServeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = io::CertificateAuthority::loadOrCreate(folder / "ca", "muster");
    ASSERT_TRUE(made);
    ca = std::make_unique<io::CertificateAuthority>(*made);
    network.controller = *Ipv4::parse(address);
    auto started = begin();
    ASSERT_TRUE(started) << started.error().str();
    server = std::move(*started);
  }
  Result<std::unique_ptr<Server>> begin() {
    return start(io.get_executor(), network, *ca, {{"GET", "/boot", plain}},
                 {{"GET", "/agent", whoAmI}});
  }
  Result<io::HttpResponse> get(const std::string& url, io::TlsTrust trust = {}) {
    auto client = io::makeHttpClient(std::move(trust));
    io::HttpRequest request;
    request.url = *io::Url::parse(url);
    request.timeout = std::chrono::seconds(5);
    auto answer = test::runAsync(io, client->send(request));
    EXPECT_TRUE(answer) << answer.error().str();
    return answer ? answer : io::HttpResponse{};
  }

  const std::string address =
      fmt::format("127.66.{}.{}", ::getpid() / 250 % 250, ::getpid() % 250 + 1);
  asio::io_context io;
  test::TempFolder folder;
  std::unique_ptr<io::CertificateAuthority> ca;
  inventory::Network network;
  std::unique_ptr<Server> server;
};

TEST_F(ServeTest, eachListenerHasItsOwnRoutes) {
  io::TlsTrust pinned;
  pinned.pinned_fingerprint = ca->fingerprint();
  pinned.pin_is_root = true;
  EXPECT_EQ(get("http://" + address + ":8080/boot")->body, "plain");
  EXPECT_EQ(get("http://" + address + ":8080/agent")->status, 404)
      << "nothing of the agents over plain HTTP";
  EXPECT_EQ(get("https://" + address + ":8443/agent", pinned)->status, 200);
  EXPECT_EQ(get("https://" + address + ":8443/boot", pinned)->status, 404);
}

TEST_F(ServeTest, knowsTheNodeByItsCertificate) {
  const auto request = io::makeKeyAndRequest("x");
  io::TlsTrust trust;
  trust.ca_pem = ca->certificatePem();
  trust.identity = io::TlsIdentity{
      request->key_pem, *ca->signClient(request->csr_pem, "gpu007", std::chrono::hours(1))};
  EXPECT_EQ(get("https://" + address + ":8443/agent", trust)->body, "gpu007");
}

TEST_F(ServeTest, secondControllerOnTheAddressIsAConflict) {
  auto second = begin();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
  EXPECT_NE(second.error().str().find(address + ":8080"), std::string::npos);
  server->stop();
  EXPECT_TRUE(begin()) << "after stop the address is free";
}

TEST_F(ServeTest, aFleetsConnectionsAreNotRefusedForAShellsLimitOfOpenFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit tight{std::min<rlim_t>(before.rlim_max, 1024), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  server.reset();
  io.restart();
  io.poll();
  auto again = begin();
  ASSERT_TRUE(again) << again.error().str();
  server = std::move(*again);
  rlimit now{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_TRUE(now.rlim_cur == 131'072 || now.rlim_cur == before.rlim_max)
      << now.rlim_cur << ": as wanted, or as far as the rights go";
}

// ---- many nodes behind one address

using tcp = asio::ip::tcp;

/// The status line of the answer to one request, on a connection that stays.
template <class Stream>
Async<std::string> askOn(Stream& stream, std::string target) {
  boost::system::error_code error;
  const auto request = fmt::format("GET {} HTTP/1.1\r\nHost: muster\r\n\r\n", target);
  co_await asio::async_write(stream, asio::buffer(request),
                             asio::redirect_error(asio::use_awaitable, error));
  std::string heard;
  if (!error)
    co_await asio::async_read_until(stream, asio::dynamic_buffer(heard), "\r\n\r\n",
                                    asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return fail(ErrorCode::Unavailable, error.message());
  co_return heard.substr(0, heard.find('\r'));
}

constexpr std::size_t kRack = 72;  ///< nodes behind one router that translates their addresses
constexpr std::size_t kPlainOfANode =
    5;  ///< iPXE's, and the disk writer's lanes (agent/imaging/chunk_writer.h)
constexpr std::size_t kTlsOfANode = 2;  ///< an agent holds one, and for a moment two

TEST_F(ServeTest, aRackBehindOneAddressIsServedAndLosesNoConnection) {
  const auto plain_rack = [](std::string at) -> Async<std::size_t> {
    std::vector<tcp::socket> held;
    for (std::size_t i = 0; i < kRack * kPlainOfANode; ++i) {
      tcp::socket socket(co_await asio::this_coro::executor);
      co_await socket.async_connect({asio::ip::make_address(at), kHttpPort}, asio::use_awaitable);
      held.push_back(std::move(socket));
    }
    std::size_t answered = 0;
    for (int round = 0; round < 2;
         ++round)  // the first that came is the first that would have gone
      for (auto& socket : held) {
        CO_TRY(status, co_await askOn(socket, "/boot"));
        answered += status == "HTTP/1.1 200 OK" ? 1 : 0;
      }
    co_return answered;
  };
  const auto booted = test::runAsync(io, plain_rack(address), std::chrono::seconds(60));
  ASSERT_TRUE(booted) << booted.error().str();
  EXPECT_EQ(*booted, 2 * kRack * kPlainOfANode);

  const auto request = io::makeKeyAndRequest("x");
  const auto certificate = *ca->signClient(request->csr_pem, "gpu007", std::chrono::hours(1));
  asio::ssl::context tls(asio::ssl::context::tls_client);
  tls.use_certificate_chain(asio::buffer(certificate));
  tls.use_private_key(asio::buffer(request->key_pem.reveal()), asio::ssl::context::pem);
  const auto agents = [](std::string at, asio::ssl::context& context) -> Async<std::size_t> {
    std::vector<std::unique_ptr<asio::ssl::stream<tcp::socket>>> held;
    for (std::size_t i = 0; i < kRack * kTlsOfANode; ++i) {
      auto stream = std::make_unique<asio::ssl::stream<tcp::socket>>(
          co_await asio::this_coro::executor, context);
      co_await stream->next_layer().async_connect({asio::ip::make_address(at), kHttpsPort},
                                                  asio::use_awaitable);
      co_await stream->async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
      held.push_back(std::move(stream));
    }
    std::size_t answered = 0;
    for (int round = 0; round < 2; ++round)
      for (auto& stream : held) {
        CO_TRY(status, co_await askOn(*stream, "/agent"));
        answered += status == "HTTP/1.1 200 OK" ? 1 : 0;
      }
    co_return answered;
  };
  const auto polled = test::runAsync(io, agents(address, tls), std::chrono::seconds(60));
  ASSERT_TRUE(polled) << polled.error().str();
  EXPECT_EQ(*polled, 2 * kRack * kTlsOfANode);
}

TEST_F(ServeTest, anAddressWithMoreThanItsShareLosesItsOwnOldestConnection) {
  const auto crowd = [](std::string at) -> Async<std::pair<bool, bool>> {
    std::vector<tcp::socket> held;
    for (std::size_t i = 0; i < kPlainConnectionsPerAddress + 1; ++i) {
      tcp::socket socket(co_await asio::this_coro::executor);
      co_await socket.async_connect({asio::ip::make_address(at), kHttpPort}, asio::use_awaitable);
      held.push_back(std::move(socket));
    }
    const auto of_newest = co_await askOn(held.back(), "/boot");
    const auto of_oldest = co_await askOn(held.front(), "/boot");
    co_return std::pair(of_newest.has_value(), of_oldest.has_value());
  };
  const auto served = test::runAsync(io, crowd(address), std::chrono::seconds(60));
  ASSERT_TRUE(served) << served.error().str();
  EXPECT_TRUE(served->first);
  EXPECT_FALSE(served->second);
}

TEST(ConnectionsWithin, leavesHalfOfTheDescriptorsForAllElse) {
  for (const std::size_t open : {16u, 256u, 1024u, 8192u, 131'072u, 1'048'576u}) {
    const auto split = connectionsWithin(open);
    EXPECT_LE(split.plain + split.tls, open / 2) << open;
    EXPECT_GE(split.plain, 1u);
    EXPECT_GE(split.tls, split.plain);
  }
  EXPECT_GE(connectionsWithin(131'072).tls, 20'000u) << "ten thousand agents, twice for a moment";
}

}  // namespace
}  // namespace muster::gateway
