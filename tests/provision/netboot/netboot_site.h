// SPDX-License-Identifier: Apache-2.0
// A network boot over services in memory, and its files in a folder of the test's own.
#pragma once

#include "provision/netboot/netboot.h"

#include "base/io/files.h"
#include "base/ip_address.h"
#include "base/limits.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/provision/clusters.h"
#include "tests/provision/enrollment_gateway.h"
#include "tests/run_async.h"
#include "tests/slowed_clock.h"

#include <gmock/gmock.h>

#include <set>

namespace muster::provision {

class NetbootTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster.networks[0].controller = *Ipv4::parse("127.0.0.1");
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  }
  static Async<io::ServerResponse> call(io::Handler handle, io::ServerRequest request) {
    co_return co_await handle(std::move(request));
  }
  Netboot& netboot() {
    if (!netboot_) {
      NetbootOptions options{folder / "run",   8080,           8443, std::string(64, 'c'),
                             folder / "hosts", folder / "tftp"};
      options.steady = [this] { return clock.steady(); };
      options.look_for_old = std::chrono::milliseconds(1);
      options.window = [this] { return limitHere(place, gateway::kEnrollmentWindow); };
      options.is_on_its_way = [this](const NodeName& node) { return on_its_way.contains(node); };
      netboot_ = makeNetboot(cluster, images, gateway, processes, io.get_executor(), options);
    }
    return *netboot_;
  }
  std::string ask(const std::string& target, const std::string& from = "10.20.1.1") {
    io::ServerRequest request;
    request.method = "GET";
    request.target = target;
    request.remote_address = from;
    const auto routes = netboot().routes();
    EXPECT_EQ(routes.at(0).path, "/boot/ipxe");
    const auto response = muster::test::runAsync(call(routes[0].handle, request)).value();
    EXPECT_EQ(response.status, 200);
    return std::get<std::string>(response.body);
  }

  FakeClock clock;
  muster::test::SlowedClock place{clock, 1};
  asio::io_context io;
  muster::test::TempFolder folder;
  inventory::Cluster cluster = twoNodes();
  muster::test::FakeImageStore images;
  muster::test::FakeProcessRunner processes;
  EnrollmentGateway gateway;
  std::set<NodeName> on_its_way;  ///< as an earlier process has left them
  std::unique_ptr<Netboot> netboot_;
};

}  // namespace muster::provision
