// Declaration → topology → net file → topology.
#include "fabric/leaves.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

TEST(DeclaredTopology, superPodOfOneScalableUnitHasTheVendorsCableCounts) {
  auto cluster = railCluster(31, 1, 32, 8, 4);
  auto& fabric = cluster.fabrics["ib"];
  fabric.switch_ports = 64;
  fabric.uplinks_per_leaf_spine = 8;
  auto topology = declared(cluster);
  int switches = 0, up = 0, down = 0;
  for (const auto& [name, device] : topology.devices) switches += device.is_switch;
  for (const auto& link : topology.links) (link.a.node.starts_with("leaf-") && link.b.node.starts_with("spine-") ? up : down) += 1;
  EXPECT_EQ(switches, 12);
  EXPECT_EQ(up, 256);
  EXPECT_EQ(down, 31 * 8 + 1);  // and the controller
}

TEST(DeclaredTopology, placesNodesByTheirOrderSuBySu) {
  auto topology = declared(railCluster(6, 2, 4, 2, 2));
  Port hca{"gpu006 mlx5_1", 1};
  ASSERT_NE(findLink(topology, hca), nullptr);
  EXPECT_EQ(findLink(topology, hca)->b, (Port{"leaf-su2-r1", 2}));
}

TEST(Leaves, areTheSwitchesOfANodesRails) {
  auto cluster = railCluster(6, 2, 4, 2, 2);
  const auto leaves = leavesOf(cluster);
  EXPECT_EQ(leaves.at("gpu001"), (std::set<std::string>{"leaf-su1-r0", "leaf-su1-r1"}));
  EXPECT_EQ(leaves.at("gpu006"), (std::set<std::string>{"leaf-su2-r0", "leaf-su2-r1"}));
  cluster.fabrics["ib"].sus = 0;
  EXPECT_TRUE(leavesOf(cluster).empty()) << "a declaration that cannot be expanded";
}

TEST(DeclaredTopology, givesTheControllerTheLastDownPortSoThatNewNodesDoNotMoveIt) {
  for (int nodes : {1, 4}) {
    auto topology = declared(railCluster(nodes));
    EXPECT_EQ(findLink(topology, {"controller mlx5_0", 1})->b, (Port{"leaf-su1-r0", 8}));
  }
}

TEST(DeclaredTopology, leavesOutNodesOfOtherProfiles) {
  auto cluster = railCluster(3);
  cluster.profiles["login"].name = "login";
  cluster.nodes[0].profile = "login";
  auto topology = declared(cluster);
  EXPECT_EQ(topology.devices.count("gpu001 mlx5_0"), 0u);
  EXPECT_EQ(findLink(topology, {"gpu002 mlx5_0", 1})->b, (Port{"leaf-su1-r0", 1}));
}

TEST(DeclaredTopology, refusesWhatDoesNotFit) {
  struct Case {
    const char* words;
    std::function<void(inventory::Cluster&)> spoil;
  };
  const std::vector<Case> cases = {
      {"places", [](auto& c) { c.fabrics["ib"].nodes_per_su = 2; }},
      {"no spine", [](auto& c) { c.fabrics["ib"].spines_per_su = 0; }},
      {"uplinks", [](auto& c) { c.fabrics["ib"].uplinks_per_leaf_spine = 5; }},
      {"a spine needs", [](auto& c) { c.fabrics["ib"].rails = 17; }},
      {"switch_ports", [](auto& c) { c.fabrics["ib"].switch_ports = 255; }},
      {"at least 1", [](auto& c) { c.fabrics["ib"].sus = 0; }},
      {"tier", [](auto& c) { c.fabrics["ib"].sus = 2'000'000'000; }},
      {"controller",
       [](auto& c) {
         c.fabrics["ib"].nodes_per_su = 3;
         c.fabrics["ib"].switch_ports = 6;
       }},
  };
  for (const auto& one : cases) {
    auto cluster = railCluster(3);
    one.spoil(cluster);
    auto topology = declaredTopology(cluster, cluster.fabrics["ib"]);
    ASSERT_FALSE(topology) << one.words;
    EXPECT_EQ(topology.error().code(), ErrorCode::InvalidInput);
    EXPECT_THAT(topology.error().text(), HasSubstr(one.words));
  }
}

TEST(DeclaredTopology, readsExplicitCablesAndRefusesAPortUsedTwice) {
  auto cluster = railCluster(2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::Explicit;
  fabric.cables = {{"gpu001", 1, "sw", 1, {}}, {"gpu002 mlx5_1", 1, "sw", 2, {}}, {"controller", 1, "sw", 3, {}}};
  auto topology = declared(cluster);
  EXPECT_EQ(findLink(topology, {"gpu001 mlx5_0", 1})->b, (Port{"sw", 1}));
  EXPECT_EQ(findLink(topology, {"gpu002 mlx5_1", 1})->b, (Port{"sw", 2}));
  EXPECT_EQ(topology.devices.size(), 4u);
  fabric.cables.push_back({"gpu002", 1, "sw", 2, {"cluster.yaml", 7, 3}});
  auto twice = declaredTopology(cluster, fabric);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().str(), HasSubstr("cluster.yaml:7:3"));
  EXPECT_THAT(twice.error().str(), HasSubstr("two cables end at sw port 2"));
}

TEST(NetFile, readsBackWhatItWrites) {
  auto topology = declared(railCluster(6, 2, 4, 3, 2));
  auto again = parseIbnetdiscover(toIbsimNet(topology));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->links, topology.links);
  ASSERT_EQ(again->devices.size(), topology.devices.size());
  for (const auto& [name, device] : topology.devices) {
    EXPECT_EQ(again->devices.at(name).ports, device.ports);
    EXPECT_EQ(again->devices.at(name).is_switch, device.is_switch);
  }
}

TEST(NetFile, startsWithTheControllersHcaWhereClientsAttach) {
  EXPECT_EQ(
      toIbsimNet(declared(railCluster(2))).rfind("Hca\t1 \"controller-mlx5_0\"\t\t# \"controller mlx5_0\"\n[1]\t\"leaf-su1-r0\"[8]", 0),
      0u);
  auto cluster = railCluster(2);
  cluster.fabrics["ib"].subnet_managers.clear();
  EXPECT_EQ(toIbsimNet(declared(cluster)).rfind("Hca\t1 \"gpu001-mlx5_0\"", 0), 0u);
}

constexpr std::string_view kFound = R"(#
# Topology file: generated on Fri Nov 20 14:16:20 2026
#
# Initiated from node 0000000000100000 port 0000000000100001

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x200000
switchguid=0x200000(200000)
Switch	64 "S-0000000000200000"		# "leaf-su1-r0" enhanced port 0 lid 2 lmc 0
[1]	"H-0000000000100002"[1](100003) 		# "gpu001 mlx5_0" lid 4 4xHDR
[8]	"H-0000000000100000"[1](100001) 		# "controller mlx5_0" lid 1 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0x100002
caguid=0x100002
Ca	1 "H-0000000000100002"		# "gpu001 mlx5_0"
[1](100003) 	"S-0000000000200000"[1]		# lid 4 lmc 0 "leaf-su1-r0" lid 2 4xHDR

caguid=0x100000
Ca	1 "H-0000000000100000"		# "controller mlx5_0"
[1](100001) 	"S-0000000000200000"[8]		# lid 1 lmc 0 "leaf-su1-r0" lid 2 4xHDR
)";

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out(text);
  auto at = out.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? out : out.replace(at, what.size(), by);
}

TEST(ParseIbnetdiscover, readsNamesPortsGuidsAndLids) {
  auto topology = parseIbnetdiscover(kFound);
  ASSERT_TRUE(topology) << topology.error().str();
  EXPECT_EQ(topology->links, (std::vector<Link>{{{"controller mlx5_0", 1}, {"leaf-su1-r0", 8}, "4xHDR"},
                                                {{"gpu001 mlx5_0", 1}, {"leaf-su1-r0", 1}, "4xHDR"}}));
  const auto& leaf = topology->devices.at("leaf-su1-r0");
  EXPECT_TRUE(leaf.is_switch);
  EXPECT_EQ(leaf.ports, 64);
  EXPECT_EQ(leaf.addresses.at(0), (PortAddress{"0x0000000000200000", 2}));
  const auto& hca = topology->devices.at("gpu001 mlx5_0");
  EXPECT_EQ(hca.guid, "0x0000000000100002");
  EXPECT_EQ(hca.addresses.at(1), (PortAddress{"0x0000000000100003", 4}));
}

TEST(ParseIbnetdiscover, doesNotTakeTwoDevicesWithOneNameForEither) {
  auto topology = parseIbnetdiscover(
      replaced(kFound, "\"H-0000000000100000\"\t\t# \"controller mlx5_0\"", "\"H-0000000000100000\"\t\t# \"gpu001 mlx5_0\""));
  ASSERT_TRUE(topology) << topology.error().str();
  EXPECT_EQ(topology->devices.count("gpu001 mlx5_0"), 0u);
  EXPECT_EQ(topology->devices.count("gpu001 mlx5_0 (0x0000000000100002)"), 1u);
  EXPECT_EQ(topology->devices.count("gpu001 mlx5_0 (0x0000000000100000)"), 1u);
}

TEST(ParseIbnetdiscover, keepsBothEndsWhenTheyDisagreeOnTheWidth) {
  auto topology = parseIbnetdiscover(replaced(kFound, "\"gpu001 mlx5_0\" lid 4 4xHDR", "\"gpu001 mlx5_0\" lid 4 1xHDR"));
  ASSERT_TRUE(topology) << topology.error().str();
  EXPECT_EQ(topology->links[1].width_speed, "4xHDR/1xHDR");
}

TEST(ParseIbnetdiscover, refusesWhatIsNoSoundDiscovery) {
  struct Case {
    std::string text;
    const char* words;
  };
  const std::vector<Case> cases = {
      {replaced(kFound, "[1](100003) \t\"S-0000000000200000\"[1]\t\t# lid 4 lmc 0 \"leaf-su1-r0\" lid 2 4xHDR\n", ""),
       "line 11: the cable is seen from"},
      {replaced(kFound, "\"S-0000000000200000\"[8]", "\"S-0000000000200009\"[8]"), "not in the list"},
      {replaced(kFound, "4xHDR", "fast"), "'fast' is no width and speed"},
      {replaced(kFound, "Ca\t1 \"H-0000000000100000\"", "Ca\t1 \"H-0000000000100002\""), "there twice"},
      {replaced(kFound, "[8]", "[x]"), "expected: [PORT]"},
      {replaced(kFound, "[8]", "[999]"), "expected: [PORT]"},
      {replaced(kFound, "vendid=0x2c9", "ibpanic: out of luck"), "line 6"},
      {"[1]\t\"a\"[1]\t# 4xHDR\n", "before any device"},
      {std::string(5000, 'x'), "longer than"},
  };
  for (const auto& one : cases) {
    auto topology = parseIbnetdiscover(one.text);
    ASSERT_FALSE(topology) << one.words;
    EXPECT_EQ(topology.error().code(), ErrorCode::Corrupt);
    EXPECT_THAT(topology.error().text(), HasSubstr(one.words));
  }
}

}  // namespace
}  // namespace muster::fabric::test
