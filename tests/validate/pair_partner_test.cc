// SPDX-License-Identifier: Apache-2.0
// Which node a node is paired with.
#include "validate/pair_partner.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "tests/fakes/fake_agent_gateway.h"

#include <gtest/gtest.h>

namespace muster::validate {
namespace {

inventory::Cluster rack(int nodes) {
  inventory::Cluster cluster;
  cluster.profiles["p"] = {};
  cluster.profiles["p"].name = "p";
  for (int i = 1; i <= nodes; ++i) {
    inventory::Node node;
    node.name = NodeName(fmt::format("n{}", i));
    node.profile = "p";
    node.address = Ipv4(0x0a000000u + static_cast<unsigned>(i));
    cluster.nodes.push_back(node);
  }
  return cluster;
}

lifecycle::FactSet poolFacts(std::vector<std::pair<std::string, std::string>> values) {
  lifecycle::FactSet facts;
  for (const auto& [node, value] : values)
    facts.put({lifecycle::Subject(NodeName(node)), FacetName("pool"), value, {}, "", ""});
  return facts;
}

std::string names(const std::vector<Partner>& partners) {
  std::string out;
  for (const auto& partner : partners) out += partner.node.str() + (partner.pooled ? "? " : " ");
  return out;
}

TEST(PairPartner, devicesAreSortedAsRails) {
  const auto cluster = rack(2);
  test::FakeAgentGateway agents;
  agents.boot(NodeName("n2"), wire::Mode::Disk).probes["rdma.devices"] = "mlx5_10,mlx5_0, mlx5_2";
  EXPECT_EQ(partnersOf(cluster, cluster.nodes[0], agents, {}).front().devices,
            (std::vector<std::string>{"mlx5_0", "mlx5_2", "mlx5_10"}));
}

TEST(PairPartner, aNicOfAnotherNetworkIsNoRail) {
  auto cluster = rack(2);
  cluster.fabrics["ib"].name = "ib";
  cluster.profiles["p"].fabric = "ib";
  test::FakeAgentGateway agents;
  auto& probes = agents.boot(NodeName("n1"), wire::Mode::Disk).probes;
  probes["rdma.devices"] = "mlx5_0,mlx5_1,mlx5_2,rxe0";
  probes["rdma.layers"] = "mlx5_0=InfiniBand,mlx5_1=Ethernet,mlx5_2=InfiniBand,rxe0=Ethernet";
  const auto rails = [&] { return railDevicesOf(cluster, cluster.nodes[0], agents); };
  EXPECT_EQ(rails(), (std::vector<std::string>{"rxe0", "mlx5_0", "mlx5_2"}))
      << "soft-RoCE stands for any fabric";
  cluster.profiles["p"].rails = {{"mlx5_2", {}, ""}, {"mlx5_0", {}, ""}, {"mlx5_7", {}, ""}};
  EXPECT_EQ(rails(), (std::vector<std::string>{"mlx5_2", "mlx5_0"}))
      << "as the profile numbers them, and as far as they are there";
  cluster.profiles["p"].rails.clear();
  cluster.fabrics["ib"].roce.emplace();
  EXPECT_EQ(rails(), (std::vector<std::string>{"rxe0", "mlx5_1"}));
  probes.erase("rdma.layers");
  EXPECT_EQ(rails().size(), 4u) << "an agent of before tells no layers";
}

TEST(PairPartner, ofSeveralFabricsRailsSayWhichIsMeant) {
  auto cluster = rack(3);
  cluster.fabrics["ib"].name = "ib";
  cluster.fabrics["storage"].name = "storage";
  auto& profile = cluster.profiles["p"];
  profile.fabric = "ib";
  profile.other_fabrics = {"storage"};
  profile.rails = {{"mlx5_1", {}, "", "storage"}, {"mlx5_0", {}, "", "ib"}};
  cluster.profiles["s"].name = "s";
  cluster.profiles["s"].fabric = "storage";
  cluster.nodes[2].profile = "s";
  test::FakeAgentGateway agents;
  for (const auto& node : cluster.nodes)
    agents.boot(node.name, wire::Mode::Disk).probes["rdma.devices"] = "mlx5_0,mlx5_1,mlx5_7";
  const auto rails = [&](const std::string& fabric) {
    return railDevicesOf(cluster, cluster.nodes[0], agents, fabric);
  };
  EXPECT_EQ(rails(""), std::vector<std::string>{"mlx5_0"}) << "the compute fabric's";
  EXPECT_EQ(rails("storage"), std::vector<std::string>{"mlx5_1"});
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[0], agents, {})), "n2 ")
      << "n3 is not on the compute fabric";
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[2], agents, {})), "n1 n2 ");
  EXPECT_EQ(partnersOf(cluster, cluster.nodes[2], agents, {}).front().devices,
            std::vector<std::string>{"mlx5_1"})
      << "the partner's HCA on the storage fabric";
  agents.boot(NodeName("n1"), wire::Mode::Disk).probes["rdma.devices"] = "mlx5_7";
  EXPECT_TRUE(rails("storage").empty()) << "no other device stands for a rail";
}

TEST(PairPartner, neighboursComeFirst) {
  const auto cluster = rack(4);
  test::FakeAgentGateway agents;
  for (const auto& node : cluster.nodes)
    agents.boot(node.name, wire::Mode::Disk).probes["rdma.devices"] = "rxe0";
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[0], agents, {})), "n2 n3 n4 ");
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[1], agents, {})), "n1 n3 n4 ");
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[2], agents, {})), "n4 n1 n2 ");
}

TEST(PairPartner, thoseThatMayRunJobsComeLast) {
  auto cluster = rack(5);
  cluster.profiles["p"].pool = "batch";
  test::FakeAgentGateway agents;
  for (const auto& node : cluster.nodes)
    agents.boot(node.name, wire::Mode::Disk).probes["rdma.devices"] = "rxe0";
  const auto facts = poolFacts({{"n2", "in"}, {"n3", "drained"}, {"n4", "out"}});
  EXPECT_EQ(names(partnersOf(cluster, cluster.nodes[0], agents, facts)), "n3 n4 n2? n5? ")
      << "of n5 nothing is known";
}

TEST(PairPartner, aNodeWithoutRdmaOrInRamOsIsNoPartner) {
  const auto cluster = rack(3);
  test::FakeAgentGateway agents;
  agents.boot(NodeName("n2"), wire::Mode::Ram).probes["rdma.devices"] = "rxe0";
  agents.boot(NodeName("n3"), wire::Mode::Disk);
  EXPECT_TRUE(partnersOf(cluster, cluster.nodes[0], agents, {}).empty());
}

TEST(PairPartner, onlyAPoolThatSaysSoMakesANodeFree) {
  const auto why = [](const std::string& value, const std::string& evidence) {
    return whyNotDisturb(
        NodeName("n2"),
        lifecycle::Fact{
            lifecycle::Subject(NodeName("n2")), FacetName("pool"), value, {}, "", evidence});
  };
  EXPECT_EQ(why("drained", ""), "");
  EXPECT_EQ(why("out", ""), "");
  EXPECT_EQ(why("in", R"({"jobs":false,"state":"IDLE"})"), "");
  for (const auto* evidence :
       {R"({"jobs":true})", R"({"state":"IDLE"})", R"({"jobs":"no"})", "[]", "", "junk"})
    EXPECT_NE(why("in", evidence).find("may be running jobs"), std::string::npos) << evidence;
  EXPECT_NE(why("silent", R"({"jobs":false})"), "");
  EXPECT_NE(whyNotDisturb(NodeName("n2"), std::nullopt).find("could not be read"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::validate
