// SPDX-License-Identifier: Apache-2.0
#include "bmc/fleet.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/profile.h"
#include "tests/bmc/values_store.h"
#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::bmc {
namespace {

class BmcFleetTest : public testing::Test {
 protected:
  BmcFleetTest() {
    ::setenv("MUSTER_TEST_BMC_PASSWORD", "right", 1);
    inventory::Credential credential;
    credential.name = "bmc";
    credential.username = "admin";
    credential.password.env = "MUSTER_TEST_BMC_PASSWORD";
    cluster.credentials["bmc"] = credential;
    cluster.profiles["gpu-node"].name = "gpu-node";
    add("gpu001", "https://10.20.250.1");
    add("gpu002", "http://10.20.250.2");
    add("gpu003", "libvirt:test");
    fleet = makeBmcFleet(cluster, store, loop.clock, loop.workers, virtual_bmc.net.factory(),
                         "test:///default");
  }
  ~BmcFleetTest() override { ::unsetenv("MUSTER_TEST_BMC_PASSWORD"); }
  void add(const std::string& name, const std::string& url) {
    inventory::Node node;
    node.name = NodeName(name);
    node.profile = "gpu-node";
    node.bmc.url = url;
    cluster.nodes.push_back(node);
  }

  Async<io::HttpResponse> silence() {
    co_await loop.clock.sleep(std::chrono::hours(1));
    co_return fail(ErrorCode::Timeout, "nothing");
  }

  test::VirtualLoop loop;
  test::VirtualBmc virtual_bmc{loop};
  test::ValuesStore store;
  inventory::Cluster cluster;
  std::unique_ptr<BmcFleet> fleet;
};

TEST_F(BmcFleetTest, theUrlChoosesTheDriver) {
  EXPECT_EQ(loop.run(fleet->at(NodeName("gpu001")).system())->serial, "SN-1");
  EXPECT_EQ(loop.run(fleet->at(NodeName("gpu003")).system())->manufacturer, "libvirt");
  EXPECT_EQ(&fleet->at(NodeName("gpu001")), &fleet->at(NodeName("gpu001")));
}

TEST_F(BmcFleetTest, anAddressThatIsNoneSaysWhatToCorrect) {
  auto plain = loop.run(fleet->at(NodeName("gpu002")).system());
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(plain.error().str(), testing::HasSubstr("correct bmc.url"));
  EXPECT_FALSE(loop.run(fleet->at(NodeName("gpu999")).system()));
}

TEST_F(BmcFleetTest, closeLogsOut) {
  ASSERT_TRUE(loop.run(fleet->at(NodeName("gpu001")).system()));
  ASSERT_TRUE(loop.run(fleet->close()));
  EXPECT_EQ(virtual_bmc.net.requests.back().method, "DELETE");
  ASSERT_TRUE(loop.run(fleet->close()));
}

TEST_F(BmcFleetTest, closeDoesNotWaitForASilentBmc) {
  ASSERT_TRUE(loop.run(fleet->at(NodeName("gpu001")).system()));
  virtual_bmc.net.handle = [this](io::HttpRequest) -> Async<io::HttpResponse> { return silence(); };
  const auto before = loop.clock.now();
  EXPECT_FALSE(loop.run(fleet->close()));
  EXPECT_LE(loop.clock.now() - before, std::chrono::seconds(5));
  while (loop.clock.advanceToNext()) loop.settle();
}

}  // namespace
}  // namespace muster::bmc
