// SPDX-License-Identifier: Apache-2.0
// The simulated fleet speaks the real protocols: the controller's own BMC driver and agent gateway
// take a node from power-off to its installed system, over TLS on loopback.
#include "bmc/fleet.h"
#include "base/ip_address.h"
#include "gateway/gateway_server.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "lab/fleet/fleet.h"
#include "tests/fakes/fake_network_evidence.h"
#include "tests/fakes/memory_store.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::lab::fleet {
namespace {

using wire::Mode;
using wire::TaskKind;
using namespace std::chrono_literals;

constexpr const char* kPasswordVariable = "MUSTER_FLEET_TEST_PASSWORD";

TEST(FleetConditions, delaysStayWithinTheirBounds) {
  Random random(1);
  const Delay delay{100ms, 500ms};
  std::chrono::milliseconds sum{0};
  for (int i = 0; i < 2'000; ++i) {
    const auto drawn = delay.draw(random);
    ASSERT_GE(drawn, 100ms);
    ASSERT_LE(drawn, 500ms);
    sum += drawn;
  }
  EXPECT_GT(sum / 2'000, 150ms);
  EXPECT_LT(sum / 2'000, 350ms);
  EXPECT_EQ(Delay{}.draw(random), 0ms);
}

TEST(FleetConditions, oneSeedIsOneWorld) {
  Random a(7), b(7);
  const Delay delay{1ms, 1000ms};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(delay.draw(a), delay.draw(b));
}

TEST(FleetPlan, everyNodeHasItsOwnAddressMacAndSerial) {
  std::set<std::string> seen;
  for (const int number : {1, 2, 255, 256, 257, 65'535, 65'536}) {
    const auto spec = specOf(number);
    EXPECT_TRUE(Mac::parse(spec.mac));
    EXPECT_TRUE(Cidr::parse("127.0.0.0/8")->contains(*Ipv4::parse(spec.bmc_address)));
    EXPECT_TRUE(seen.insert(spec.name).second && seen.insert(spec.mac).second &&
                seen.insert(spec.bmc_address).second && seen.insert(spec.serial).second);
  }
}

class FleetTest : public testing::Test {
 protected:
  FleetTest() : ca_(*io::CertificateAuthority::loadOrCreate(folder_ / "ca", "test")) {
    ::setenv(kPasswordVariable, "secret", 1);
    http_ = std::move(*io::startHttpServer(io_.get_executor(), {}));
    http_->addRoutes({{"GET", "/boot/ipxe", [this](io::ServerRequest) { return script(); }}});
  }

  /// One node under these conditions, and a controller that knows it.
  void start(Conditions conditions) {
    world_.emplace(World{io_.get_executor(), clock_, workers_, conditions,
                         fmt::format("http://127.0.0.1:{}", http_->port()),
                         vbmc::Account::make(kUsername, "secret")});
    auto spec = specOf(1);
    spec.bmc_address = "127.0.0.1";
    spec.bmc_port = 0;
    auto node = SimNode::make(*world_, spec);
    ASSERT_TRUE(node) << node.error().str();
    node_ = std::move(*node);
    declare(spec);
    network_.show("127.0.0.1", spec.mac);
    gateway_ = gateway::makeGatewayServer(cluster_, ca_, store_, clock_, network_);
    io::ServerOptions options;
    options.identity = *ca_.issueServer("controller", {"127.0.0.1"}, 1h);
    options.client_ca_pem = ca_.certificatePem();
    https_ = std::move(*io::startHttpServer(io_.get_executor(), options));
    https_->addRoutes(gateway_->routes());
    bmcs_ = bmc::makeBmcFleet(cluster_, store_, clock_, workers_);
  }
  void declare(const NodeSpec& spec) {
    inventory::Network network;
    network.name = "provisioning";
    network.cidr = *Cidr::parse("127.0.0.0/8");
    network.dhcp_mode = inventory::DhcpMode::None;
    cluster_.networks.push_back(network);
    inventory::Credential credential{"bmc", kUsername, {}};
    credential.password.env = kPasswordVariable;
    cluster_.credentials["bmc"] = credential;
    cluster_.profiles["sim"].name = "sim";
    inventory::Node node;
    node.name = NodeName(spec.name);
    node.profile = "sim";
    node.mac = *Mac::parse(spec.mac);
    node.bmc.url = fmt::format("https://127.0.0.1:{}", node_->bmcPort());
    cluster_.nodes.push_back(node);
  }
  NodeName name() const { return cluster_.nodes.front().name; }
  bmc::Bmc& bmc() { return bmcs_->at(name()); }
  std::string url() const { return fmt::format("https://127.0.0.1:{}", https_->port()); }

  Async<void> bootInto(Mode mode) {
    CO_TRY_OK(
        co_await bmc().bootOnce(mode == Mode::Ram ? bmc::BootTarget::Pxe : bmc::BootTarget::Disk));
    CO_TRY_OK(co_await bmc().power(mode == Mode::Ram ? bmc::PowerAction::On
                                                     : bmc::PowerAction::ForceRestart));
    CO_TRY(state, co_await gateway_->waitFor(name(), mode, "", 10s));
    mode_ = state.mode;
    digest_ = state.image_digest;
    co_return Result<void>();
  }
  Async<void> install() {
    CO_TRY_OK(co_await bootInto(Mode::Ram));
    const nlohmann::json params{{"digest", "sha256:abc"},
                                {"agent", {{"url", url()}, {"ca_pem", ca_.certificatePem()}}}};
    CO_TRY_OK(
        co_await gateway_->runTask(name(), {"write-1", TaskKind::WriteImage, params.dump(), 10s}));
    CO_TRY_OK(co_await bootInto(Mode::Disk));
    const nlohmann::json driver{{"verify", {{"package.rdma-core", "44.*"}}}};
    CO_TRY(installed, co_await gateway_->runTask(
                          name(), {"driver-1", TaskKind::InstallDriver, driver.dump(), 10s}));
    driver_ = installed.result;
    co_return Result<void>();
  }
  Task<io::ServerResponse> script() {
    const auto enrollment = gateway_->openEnrollment(name(), cluster_.nodes.front().mac);
    co_return io::ServerResponse::text(
        200, fmt::format("#!ipxe\nkernel k muster.url={} muster.ca={} muster.enrolment={}\nboot\n",
                         url(), ca_.fingerprint(), enrollment.value_or("")));
  }

  test::TempFolder folder_;
  SystemClock clock_;
  test::FakeNetworkEvidence network_;
  asio::io_context io_;
  Workers workers_{1};
  io::CertificateAuthority ca_;
  test::MemoryStore store_;
  inventory::Cluster cluster_;
  std::optional<World> world_;
  std::unique_ptr<io::HttpServer> http_, https_;
  std::unique_ptr<SimNode> node_;
  std::unique_ptr<gateway::GatewayServer> gateway_;
  std::unique_ptr<bmc::BmcFleet> bmcs_;
  Mode mode_ = Mode::Ram;
  std::string digest_, driver_;
};

TEST_F(FleetTest, aNodeIsInstalledOverTheRealProtocols) {
  start({});
  auto installed = test::runAsync(io_, install());
  ASSERT_TRUE(installed) << installed.error().str();
  EXPECT_EQ(mode_, Mode::Disk);
  EXPECT_EQ(digest_, "sha256:abc");
  EXPECT_EQ(nlohmann::json::parse(driver_), (nlohmann::json{{"package.rdma-core", "44.0"}}));
}

TEST_F(FleetTest, anEmptyDiskStartsNothing) {
  start({});
  auto power = [this]() -> Async<void> {
    CO_TRY_OK(co_await bmc().power(bmc::PowerAction::On));
    auto called = co_await gateway_->waitFor(name(), std::nullopt, "", 1s);
    co_return called ? Result<void>() : fail(called.error());
  };
  auto outcome = test::runAsync(io_, power());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::Timeout);
}

TEST_F(FleetTest, aTaskThatFailsSaysSo) {
  Conditions conditions;
  conditions.task_fails = 1;
  start(conditions);
  auto installed = test::runAsync(io_, install());
  ASSERT_FALSE(installed);
  EXPECT_NE(installed.error().str().find("the simulated task failed"), std::string::npos)
      << installed.error().str();
}

TEST_F(FleetTest, aBusyBmcSaysSo) {
  Conditions conditions;
  conditions.redfish_busy = 1;
  start(conditions);
  auto look = [this]() -> Async<int> {
    auto client = io::makeHttpClient(io::TlsTrust{.accept_first = true});
    io::HttpRequest request;
    CO_TRY(root, io::Url::parse(cluster_.nodes.front().bmc.url + "/redfish/v1"));
    request.url = root;
    CO_TRY(response, co_await client->send(std::move(request)));
    co_return response.status;
  };
  auto status = test::runAsync(io_, look());
  ASSERT_TRUE(status) << status.error().str();
  EXPECT_EQ(*status, 503);
}

}  // namespace
}  // namespace muster::lab::fleet
