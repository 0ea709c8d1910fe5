// SPDX-License-Identifier: Apache-2.0
// Declaration → topology → net file → topology.
#include "fabric/topology/leaves.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

TEST(DeclaredTopology, superPodOfOneScalableUnitHasTheVendorsCableCounts) {
  auto topology = declared(scalableUnit(31, {"controller"}));
  int switches = 0, up = 0, down = 0;
  for (const auto& [name, device] : topology.devices) switches += device.is_switch;
  for (const auto& link : topology.links)
    (link.a.node.starts_with("leaf-") && link.b.node.starts_with("spine-") ? up : down) += 1;
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

std::vector<std::string> inOrder(const inventory::Cluster& cluster) {
  std::vector<std::string> names;
  for (const auto& node : cluster.nodes) names.push_back(node.name.str());
  return names;
}

TEST(DeclaredPlaces, removingANodeChangesOnlyItsOwnCables) {
  for (const auto shape :
       {inventory::FabricShape::RailOptimized, inventory::FabricShape::FatTree}) {
    auto cluster = railCluster(7, 2, 4, 2, 2);
    auto& fabric = cluster.fabrics["ib"];
    fabric.shape = shape;
    const auto by_order = declared(cluster);
    fabric.places = inOrder(cluster);
    const auto before = declared(cluster);
    EXPECT_EQ(before.links, by_order.links) << "the same order, said aloud";
    cluster.nodes.erase(cluster.nodes.begin() + 2);  // gpu003 goes away for repair
    fabric.places[2] = "";
    auto expected = before;
    for (int rail : {0, 1}) unplug(expected, {hcaName("gpu003", rail), 1});
    EXPECT_EQ(declared(cluster).links, expected.links);
    fabric.places.clear();  // what it would be without them
    EXPECT_NE(declared(cluster).links, expected.links);
  }
}

TEST(DeclaredPlaces, emptyOnesAndAnyOrder) {
  auto cluster = railCluster(3, 2, 4, 2, 2);
  cluster.fabrics["ib"].places = {"", "gpu003", "", "", "gpu001", "gpu002"};
  auto topology = declared(cluster);
  EXPECT_EQ(findLink(topology, {"gpu003 mlx5_1", 1})->b, (Port{"leaf-su1-r1", 2}));
  EXPECT_EQ(findLink(topology, {"gpu001 mlx5_0", 1})->b, (Port{"leaf-su2-r0", 1}));
  EXPECT_EQ(findLink(topology, {"gpu002 mlx5_0", 1})->b, (Port{"leaf-su2-r0", 2}));
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::FatTree;  // a place is a run of two ports
  topology = declared(cluster);
  EXPECT_EQ(findLink(topology, {"gpu003 mlx5_1", 1})->b, (Port{"leaf-su1-01", 4}));
  EXPECT_EQ(findLink(topology, {"gpu001 mlx5_0", 1})->b, (Port{"leaf-su2-01", 1}));
}

TEST(DeclaredPlaces, thatDoNotFitAreRefused) {
  const auto refused = [](auto change) {
    auto cluster = railCluster(2, 1, 4, 2, 2);
    auto& fabric = cluster.fabrics["ib"];
    fabric.switch_ports = 8;  // four ports down: the controller has the last
    fabric.places = {"gpu001", "gpu002"};
    change(cluster, fabric);
    const auto topology = declaredTopology(cluster, fabric);
    return topology ? std::string("nothing") : topology.error().text();
  };
  EXPECT_EQ(refused([](auto&, auto&) {}), "nothing");
  EXPECT_THAT(refused([](auto&, auto& f) { f.places = {"gpu001", "", "", "", "gpu002"}; }),
              HasSubstr("its places go up to 5, 1 SU have 4"));
  EXPECT_THAT(refused([](auto&, auto& f) { f.places = {"gpu001", "", "", "gpu002"}; }),
              HasSubstr("no port of leaf-su1-r0 is left for the controller's"));
  EXPECT_THAT(refused([](auto&, auto& f) { f.places = {"gpu002"}; }),
              HasSubstr("gpu001 is on it, but not in its places"));
  EXPECT_THAT(refused([](auto& c, auto& f) {
                f.shape = inventory::FabricShape::FatTree;
                c.profiles["gpu-node"].rails = {
                    {"mlx5_0", {}, {}}, {"mlx5_1", {}, {}}, {"mlx5_2", {}, {}}};
              }),
              HasSubstr("gpu001 has 3 HCAs, the fabric has 2 rails"));
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
  fabric.cables = {{"gpu001", 1, "sw", 1, {}},
                   {"gpu002 mlx5_1", 1, "sw", 2, {}},
                   {"controller", 1, "sw", 3, {}}};
  auto topology = declared(cluster);
  EXPECT_EQ(findLink(topology, {"gpu001 mlx5_0", 1})->b, (Port{"sw", 1}));
  EXPECT_EQ(findLink(topology, {"gpu002 mlx5_1", 1})->b, (Port{"sw", 2}));
  EXPECT_EQ(topology.devices.size(), 4u);
  fabric.cables.push_back(
      {.from_node = "gpu002", .to_node = "sw", .to_port = 2, .where = {"cluster.yaml", 7, 3}});
  auto twice = declaredTopology(cluster, fabric);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().str(), HasSubstr("cluster.yaml:7:3"));
  EXPECT_THAT(twice.error().str(), HasSubstr("two cables end at sw port 2"));
}

TEST(FatTree, ofThreeLevelsUsesEveryPortOfEverySwitch) {
  auto topology = declared(threeLevels(2048));
  EXPECT_EQ(topology.links.size(), 3u * 16384);
  EXPECT_EQ(topology.devices.size(), 16384u + 1280);
  std::map<std::string, int> used;
  for (const auto& link : topology.links) ++used[link.a.node], ++used[link.b.node];
  for (const auto& [name, device] : topology.devices)
    EXPECT_EQ(used[name], device.is_switch ? 64 : 1) << name;
  auto roots = rootSwitches(topology);
  EXPECT_EQ(roots.size(), 256u);
  EXPECT_EQ(roots.front(), "core-001");
}

TEST(FatTree, fillsLeafAfterLeafAndPlanesMeetInTheirCores) {
  auto topology = declared(threeLevels(10));
  EXPECT_EQ(findLink(topology, {"gpu004 mlx5_7", 1})->b, (Port{"leaf-su1-01", 32}));
  EXPECT_EQ(findLink(topology, {"gpu005 mlx5_0", 1})->b, (Port{"leaf-su1-02", 1}));
  // Spine 2 of SU 3 goes to the second plane: cores 9 to 16, four cables each, at the ports of
  // SU 3.
  EXPECT_EQ(findLink(topology, {"spine-su3-02", 33})->a, (Port{"core-009", 9}));
  EXPECT_EQ(findLink(topology, {"spine-su3-02", 64})->a, (Port{"core-016", 12}));
}

TEST(FatTree, ofTwoLevelsSharesItsSpines) {
  auto cluster = railCluster(8, 2, 4, 1, 2);
  cluster.fabrics["ib"].shape = inventory::FabricShape::FatTree;
  auto topology = declared(cluster);
  EXPECT_EQ(findLink(topology, {"leaf-su2-01", 12})->b, (Port{"spine-004", 2}));
  EXPECT_EQ(findLink(topology, {"controller mlx5_0", 1})->b, (Port{"leaf-su2-01", 8}));
}

TEST(FatTree, refusesWhatDoesNotFit) {
  auto refused = [](auto spoil) {
    auto cluster = threeLevels(16);
    spoil(cluster.fabrics["ib"]);
    auto topology = declaredTopology(cluster, cluster.fabrics["ib"]);
    return topology ? "nothing" : topology.error().text();
  };
  EXPECT_THAT(refused([](auto& f) { f.cores = 250; }),
              HasSubstr("250 cores cannot be shared out among 32 planes"));
  EXPECT_THAT(refused([](auto& f) { f.uplinks_per_spine_core = 5; }),
              HasSubstr("a spine needs 32 ports for leaves and 40 for cores"));
  EXPECT_THAT(refused([](auto& f) { f.sus = 20; }), HasSubstr("a core needs 80 ports for 20 SU"));
  EXPECT_THAT(refused([](auto& f) { f.sus = 1, f.leaf_down_ports = 3; }),
              HasSubstr("128 HCAs are on it"));
  EXPECT_THAT(refused([](auto& f) { f.leaf_down_ports = 33; }),
              HasSubstr("a leaf needs 33 down ports and 32 uplinks"));
}

TEST(RailOptimized, ofThreeLevelsKeepsSpinesInTheirUnit) {  // B200's form: 16 SU are 128 leaves,
                                                            // 128 spines, 64 cores
  auto cluster = railCluster(512, 16, 32, 8, 8);
  auto& fabric = cluster.fabrics["ib"];
  fabric.switch_ports = 64;
  fabric.uplinks_per_leaf_spine = 4;
  fabric.cores = 64;
  fabric.uplinks_per_spine_core = 4;
  fabric.subnet_managers.clear();
  auto topology = declared(cluster);
  std::map<int, int> by_level;
  for (const auto& [name, level] : switchLevels(topology)) ++by_level[level];
  EXPECT_EQ(by_level, (std::map<int, int>{{1, 128}, {2, 128}, {3, 64}}));
  EXPECT_EQ(findLink(topology, {"gpu033 mlx5_3", 1})->b, (Port{"leaf-su2-r3", 1}));
  EXPECT_EQ(findLink(topology, {"leaf-su2-r3", 33})->b, (Port{"spine-su2-01", 13}));
}

TEST(DeclaredTopology, namesHcasAsTheProfileDoes) {
  auto cluster = railCluster(2);
  cluster.profiles["gpu-node"].rails = {{"mlx5_0", 0, "0000:18:00.0"}, {"mlx5_3", 1, {}}};
  auto topology = declared(cluster);
  EXPECT_EQ(findLink(topology, {"gpu002 mlx5_3", 1})->b, (Port{"leaf-su1-r1", 2}));
  EXPECT_EQ(topology.devices.count("gpu002 mlx5_1"), 0u);
  cluster.profiles["gpu-node"].rails.push_back({"mlx5_4", {}, {}});
  auto third = declaredTopology(cluster, cluster.fabrics["ib"]);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().text(), HasSubstr("gpu001 has 3 HCAs, the fabric has 2 rails"));
}

TEST(DeclaredTopology, takesStorageAndUfmBesideItsShape) {
  auto cluster = railCluster(2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.cables = {{.from_node = "store1 mlx5_0",
                    .to_node = "leaf-su1-r0",
                    .to_port = 6,
                    .role = inventory::AttachedRole::Storage},
                   {.from_node = "ufm1 mlx5_0",
                    .to_node = "leaf-su1-r1",
                    .to_port = 6,
                    .role = inventory::AttachedRole::Ufm,
                    .link = "4xEDR"}};
  auto topology = declared(cluster);
  EXPECT_EQ(topology.devices.at("store1 mlx5_0").role, inventory::AttachedRole::Storage);
  EXPECT_FALSE(topology.devices.at("store1 mlx5_0").is_switch);
  EXPECT_EQ(findLink(topology, {"ufm1 mlx5_0", 1})->width_speed, "4xEDR");
  fabric.cables[0].to_node = "leaf-su1-r9";
  auto unknown = declaredTopology(cluster, fabric);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().text(), HasSubstr("the shape has no switch leaf-su1-r9"));
  fabric.cables[0] = {.from_node = "store1 mlx5_0",
                      .to_node = "leaf-su1-r0",
                      .to_port = 1,
                      .role = inventory::AttachedRole::Storage};
  auto taken = declaredTopology(cluster, fabric);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().text(), HasSubstr("two cables end at leaf-su1-r0 port 1"));
}

TEST(DeclaredTopology, takesAFoundFabricAsTheWish) {
  auto cluster = railCluster(3);
  auto topology = declared(cluster);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::Explicit;
  fabric.topology = foundText(topology);
  auto again = declared(cluster);
  EXPECT_EQ(again.links, topology.links);
  EXPECT_EQ(again.devices.at("gpu001 mlx5_0").guid, "");
  fabric.topology = "nonsense";
  auto broken = declaredTopology(cluster, fabric);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().str(), HasSubstr("fabric ib: topology_file: line 1"));
}

}  // namespace
}  // namespace muster::fabric::test
