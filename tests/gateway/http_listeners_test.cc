// SPDX-License-Identifier: Apache-2.0
// The controller's two listeners. Their ports are fixed, so every test process takes a loopback
// address of its own.
#include "gateway/http_listeners.h"
#include "tests/run_async.h"

#include <fmt/format.h>

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
