// SPDX-License-Identifier: Apache-2.0
// What `inventory check` says of fabrics that cannot be built: the same as `fabric plan`. Two
// fabrics of one inventory have no device in common.
#include "fabric/topology/declaration.h"

#include "base/diagnostic.h"
#include "fabric/discovery/discovery.h"
#include "fabric/facets.h"
#include "inventory/model/fabric_membership.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <gmock/gmock.h>

#include <chrono>

namespace muster::fabric::test {
namespace {

using inventory::AttachedRole;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const SourceRef kFabricAt{"cluster.yaml", 7, 5}, kCableAt{"cables.csv", 3, 1};

class Declarations : public ::testing::Test {
 protected:
  inventory::Fabric& fabric() { return cluster_.fabrics.at("ib"); }
  std::vector<std::string> said() {
    for (auto& [name, each] : cluster_.fabrics) each.where = kFabricAt;
    Diagnostics diagnostics;
    checkDeclarations(cluster_, diagnostics);
    std::vector<std::string> out;
    for (const auto& one : diagnostics.all()) out.push_back(one.str());
    return out;
  }
  /// One error with this place and text, which is also that of who expands the fabric.
  void expectRefused(const SourceRef& where, const std::string& text) {
    EXPECT_THAT(said(), ElementsAre(AllOf(StartsWith(where.str() + ": error: fabric ib: "),
                                          HasSubstr(text))));
    const auto declared = declaredTopology(cluster_, fabric());
    ASSERT_FALSE(declared) << text;
    EXPECT_THAT(declared.error().text(), HasSubstr(text));
  }
  inventory::Cluster cluster_ = railCluster(3);
};

TEST_F(Declarations, aFabricThatCanBeBuiltIsFine) {
  fabric().cables = portsOnSpines();
  fabric().exclude = {{"gpu001 mlx5_1", 1, "case 7"}, {"store1 mlx5_0", 0, "new"}};
  fabric().switches = {{.names = {"leaf-su1-r0", "spine-002"}, .rack = "r1"}};
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(Declarations, moreNodesThanPlacesAreRefused) {
  cluster_ = railCluster(6);
  expectRefused(kFabricAt, "6 nodes are on it, but 1 SU of 4 nodes have 4 places; raise sus");
}

TEST_F(Declarations, moreLeavesThanASpineHasPortsAreRefused) {
  fabric().sus = 12;
  expectRefused(kFabricAt, "a leaf needs");
  fabric().uplinks_per_leaf_spine = 1, fabric().spines_per_su = 1, fabric().sus = 8;
  fabric().rails = 4;
  expectRefused(kFabricAt, "a spine needs 32 ports for 32 leaves, its switch has 16");
}

// What was wrong: labels and sheets put the switch into the node's rack.
TEST_F(Declarations, aNodeWithTheNameOfASwitchOrOfTheControllerIsRefused) {
  cluster_.nodes[1].name = NodeName("leaf-su1-r0");
  expectRefused(kFabricAt, "a node and a switch are both called leaf-su1-r0");
  cluster_.nodes[1].name = NodeName("spine-001");
  expectRefused(kFabricAt, "both called spine-001");
  cluster_.nodes[1].name = NodeName("controller");
  expectRefused(kFabricAt, "a node is called controller, and so is the host of muster's own HCA");
}

TEST_F(Declarations, moreHcasThanRailsAreRefused) {
  cluster_.profiles["gpu-node"].rails = {{"mlx5_0"}, {"mlx5_1"}, {"mlx5_2"}};
  expectRefused(kFabricAt, "gpu001 has 3 HCAs, the fabric has 2 rails");
}

// By its two names: a node's port and its HCA.
TEST_F(Declarations, aPortThatIsCabledTwiceIsRefusedAtTheCable) {
  fabric().shape = inventory::FabricShape::Explicit;
  fabric().subnet_managers.clear();
  fabric().cables = {
      {.from_node = "gpu001", .to_node = "sw1", .to_port = 1},
      {.from_node = "gpu001 mlx5_0", .to_node = "sw1", .to_port = 2, .where = kCableAt}};
  EXPECT_THAT(said(), ElementsAre(AllOf(StartsWith("cables.csv:3:1: error: two cables end at "
                                                   "gpu001 mlx5_0 port 1"),
                                        HasSubstr("give one of them another port"))));
  fabric() = railCluster(3).fabrics.at("ib");  // a port that the shape has taken
  fabric().cables = {{.from_node = "store1 mlx5_0",
                      .to_node = "leaf-su1-r1",
                      .to_port = 2,
                      .role = AttachedRole::Storage,
                      .where = kCableAt}};
  EXPECT_THAT(said(), ElementsAre(StartsWith("cables.csv:3:1: error: two cables end at "
                                             "leaf-su1-r1 port 2")));
}

// What was wrong: of an explicit fabric every unknown name was a switch.
TEST_F(Declarations, aCableOfAnotherFabricsNodeIsRefused) {
  cluster_ = twoHalls();
  auto& other = cluster_.fabrics.at("ib-b");
  fabric().shape = inventory::FabricShape::Explicit;
  fabric().subnet_managers.clear();
  for (const std::string name : {"gpu003", "gpu003 mlx5_1"}) {
    fabric().cables = {{.from_node = "gpu001", .to_node = "sw1", .to_port = 1},
                       {.from_node = name, .to_node = "sw1", .to_port = 2, .where = kCableAt}};
    expectRefused(kCableAt, "gpu003 is a node that is not on the fabric ib");
  }
  fabric().cables.back() = {
      .from_node = "gpu9 mlx5_0", .to_node = "sw1", .to_port = 2, .where = kCableAt};
  expectRefused(kCableAt, "there is no node gpu9 for the HCA gpu9 mlx5_0");
  for (const char* name : {"Quantum Mellanox Technologies", "row 7"}) {  // switches have spaces too
    fabric().cables.back().from_node = name;
    EXPECT_TRUE(declaredTopology(cluster_, fabric())) << name;
  }
  // A switch of the other fabric.
  fabric().cables = {{.from_node = "gpu001", .to_node = "sw1", .to_port = 1},
                     {.from_node = "gpu002", .to_node = "sw1", .to_port = 2},
                     {.from_node = "sw1", .from_port = 9, .to_node = "b-spine-001", .to_port = 9}};
  EXPECT_THAT(said(), ElementsAre(HasSubstr("the fabrics ib and ib-b both have the switch "
                                            "b-spine-001")));
  fabric() = railCluster(4).fabrics.at("ib");
  fabric().partitions.resize(1);
  other.cables = {{.from_node = "leaf-su1-r0",
                   .from_port = 9,
                   .to_node = "b-spine-001",
                   .to_port = 9,
                   .where = kCableAt}};
  EXPECT_THAT(said(), ElementsAre(AllOf(StartsWith(kCableAt.str()),
                                        HasSubstr("the shape has no switch leaf-su1-r0"))));
}

TEST_F(Declarations, aMillionScalableUnitsAreRefusedAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  fabric().sus = 1'000'000;
  expectRefused(kFabricAt, "more than 4096 switches in one tier");
  fabric().sus = 1, fabric().cores = 1'000'000, fabric().spines_per_su = 1'000'000;
  expectRefused(kFabricAt, "more than 4096 switches in one tier");
  fabric().cores = 0, fabric().spines_per_su = 2, fabric().nodes_per_su = 1'000'000;
  expectRefused(kFabricAt, "a leaf needs 1000000 down ports");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(Declarations, namesThatNothingHasAreWarnedOf) {
  fabric().exclude = {{"gpu017 mlx5_3", 0, "case 4711"}, {"gpu001 mlx5_0", 2, "typo"}};
  fabric().switches = {{.names = {"leaf-su1-r0", "leaf-su1-r7", "leaf-su1-r8"}, .rack = "r1"},
                       {.names = {"gpu001 mlx5_0"}, .rack = "r2"}};
  EXPECT_THAT(
      said(),
      ElementsAre(AllOf(StartsWith("cluster.yaml:7:5: warning: "),
                        HasSubstr("exclude names gpu017 mlx5_3, which is no declared device"),
                        HasSubstr("muster fabric plan")),
                  HasSubstr("exclude names port 2 of gpu001 mlx5_0, which has 1"),
                  HasSubstr("switches has a row for leaf-su1-r7, which is no declared switch"),
                  HasSubstr("switches has a row for gpu001 mlx5_0, which is no declared switch")));
}

TEST_F(Declarations, warningsStandAtTheirRow) {
  const SourceRef excluded_at{"cluster.yaml", 30, 9}, row_at{"cluster.yaml", 41, 15};
  fabric().exclude = {{"gpu017 mlx5_3", 0, "case 4711", excluded_at},
                      {"gpu001 mlx5_0", 2, "typo", excluded_at}};
  fabric().switches = {{.names = {"leaf-su9-r0"}, .rack = "r1", .where = row_at}};
  EXPECT_THAT(said(), ElementsAre(StartsWith("cluster.yaml:30:9: warning: fabric ib: exclude"),
                                  StartsWith("cluster.yaml:30:9: warning: fabric ib: exclude"),
                                  StartsWith("cluster.yaml:41:15: warning: fabric ib: switches")));
}

/// Two nodes of two HCAs on two leaves and a spine.
std::vector<inventory::FabricCable> twoLeaves() {
  std::vector<inventory::FabricCable> out;
  for (int node = 1; node <= 2; ++node)
    for (int rail = 1; rail <= 2; ++rail)
      out.push_back({.from_node = fmt::format("gpu{:03}", node),
                     .from_port = rail,
                     .to_node = fmt::format("leaf{}", rail),
                     .to_port = node});
  for (int leaf = 1; leaf <= 2; ++leaf)
    out.push_back({.from_node = fmt::format("leaf{}", leaf),
                   .from_port = 9,
                   .to_node = "spine",
                   .to_port = leaf,
                   .where = kCableAt});
  return out;
}

class ExplicitDeclarations : public Declarations {
 protected:
  ExplicitDeclarations() {
    cluster_ = railCluster(2);
    fabric().shape = inventory::FabricShape::Explicit;
    fabric().subnet_managers.clear();
    fabric().cables = twoLeaves();
  }
};

TEST_F(ExplicitDeclarations, oneThatIsWholeIsFine) { EXPECT_THAT(said(), IsEmpty()); }

TEST_F(ExplicitDeclarations, islandsAreRefusedAtACableOfTheSmallerOne) {
  fabric().cables.pop_back();  // leaf2 – spine
  fabric().cables[1].where = kCableAt;
  EXPECT_THAT(said(), ElementsAre(AllOf(
                          StartsWith("cables.csv:3:1: error: fabric ib: its cables make 2 "
                                     "islands that nothing connects: that of leaf1 (4 devices) "
                                     "and that of leaf2 (3)"),
                          HasSubstr("add the missing cables between switches"))));
  fabric().roce.emplace();
  EXPECT_THAT(said(), ElementsAre(HasSubstr("warning: fabric ib: its cables make 2 islands")))
      << "rails that are networks of their own";
  // The same as a topology_file, which has no places.
  fabric().roce.reset();
  fabric().topology = foundText(declared(cluster_));
  fabric().cables.clear();
  EXPECT_THAT(said(), ElementsAre(AllOf(StartsWith(kFabricAt.str()), HasSubstr("2 islands"))));
}

TEST_F(ExplicitDeclarations, aNodeWithoutACableIsRefusedAtItsRow) {
  cluster_ = [this] {
    auto cluster = railCluster(7);
    cluster.fabrics.at("ib") = fabric();
    return cluster;
  }();
  EXPECT_THAT(said(), ElementsAre(AllOf(StartsWith(kFabricAt.str()),
                                        HasSubstr("no cable ends at gpu003, gpu004, gpu005 and 2 "
                                                  "more, which its profile puts on it"),
                                        HasSubstr("take the fabric out of the profile"))));
  cluster_.nodes[2].where = {"racks.csv", 4, 1};
  EXPECT_THAT(said(), ElementsAre(StartsWith("racks.csv:4:1: error: ")));
  // By another name of its HCA it has one.
  for (int node = 3; node <= 7; ++node)
    fabric().cables.push_back(
        {.from_node = fmt::format("gpu{:03} mlx5_9", node), .to_node = "leaf1", .to_port = node});
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(ExplicitDeclarations, aCableFromASwitchToItselfIsRefused) {
  fabric().cables.push_back({.from_node = "leaf1",
                             .from_port = 10,
                             .to_node = "leaf1",
                             .to_port = 11,
                             .where = kCableAt});
  expectRefused(kCableAt, "both ends of a cable are at leaf1 (ports 10 and 11)");
  fabric().cables.pop_back();
  auto looped = declared(cluster_);
  looped.links.push_back({{"leaf1", 10}, {"leaf1", 11}, "4xHDR"});
  fabric().topology = foundText(looped);
  fabric().cables.clear();
  EXPECT_THAT(said(), ElementsAre(HasSubstr("topology_file has a cable with both ends at leaf1 "
                                            "(ports 10 and 11)")));
}

// What was faulty when somebody looked is not what is wanted.
TEST_F(ExplicitDeclarations, aTopologyFileWithASlowCableIsWarnedOf) {
  cluster_ = railCluster(7, 2);
  auto look = declared(cluster_);
  fabric().shape = inventory::FabricShape::Explicit;
  fabric().where = kFabricAt;
  const auto from = [this](const Topology& seen) {
    fabric().topology = foundText(seen);
    return said();
  };
  EXPECT_THAT(from(look), IsEmpty());
  auto* link = findLink(look, {"gpu001 mlx5_0", 1});
  link->width_speed = "1xSDR";
  EXPECT_THAT(from(look), ElementsAre(AllOf(HasSubstr("warning: "), HasSubstr("1 of 15 cables of "
                                                                              "nodes at 1xSDR, "
                                                                              "most others at "
                                                                              "4xHDR: gpu001 mlx5_0"
                                                                              " port 1"))));
  link->width_speed = "4xHDR/1xHDR";
  auto text = foundText(look);  // each end tells its own
  const auto first = text.find("4xHDR/1xHDR");
  text.replace(first, 11, "4xHDR");
  text.replace(text.find("4xHDR/1xHDR"), 11, "1xHDR");
  fabric().topology = text;
  EXPECT_THAT(said(), ElementsAre(AllOf(HasSubstr("error: "),
                                        HasSubstr("whose ends say different speeds: gpu001"))));
  for (auto& one : look.links)  // splitter cables
    one.width_speed =
        one.a.node.starts_with("gpu") || one.a.node.starts_with("contr") ? "2xNDR" : "4xNDR";
  EXPECT_THAT(from(look), IsEmpty());
}

// What was wrong: each was an HCA of its own, so one port had three cables.
TEST_F(ExplicitDeclarations, everyNameOfAPortIsThatPort) {
  const auto cables = fabric().cables;
  for (const std::string name : {"gpu002 mlx5_0", "gpu002 mlx5_0 port 1", "gpu002 mlx5_0/1",
                                 "gpu002 mlx5_0:1", "gpu002/1", "gpu002 port 1"}) {
    fabric().cables = cables;  // its port 1 is "gpu002" there
    fabric().cables.push_back(
        {.from_node = name, .to_node = "leaf1", .to_port = 7, .where = kCableAt});
    EXPECT_THAT(said(), ElementsAre(StartsWith("cables.csv:3:1: error: two cables end at gpu002 "
                                               "mlx5_0 port 1")))
        << name;
    fabric().cables[2] = fabric().cables.back();  // instead of that one
    fabric().cables.pop_back();
    EXPECT_THAT(said(), IsEmpty()) << name;
  }
  fabric().cables[2].from_node = "gpu002 mlx5_0 port 2";
  EXPECT_THAT(said(), ElementsAre(StartsWith("cables.csv:3:1: error: gpu002 mlx5_0 has ports 1 to "
                                             "1, the cable names port 2")));
  fabric().cables[2].from_node = "gpu002 mlx5_0/1", fabric().cables[2].from_port = 2;
  expectRefused(kCableAt, "the cable of gpu002 mlx5_0/1 says port 2 as well");
  for (const std::string name : {"gpu002 mlx5_0 port one", "gpu002 mlx5_0/P1", "gpu002  mlx5_0"}) {
    fabric().cables[2].from_node = name, fabric().cables[2].from_port = 1;
    expectRefused(kCableAt, name + " is no HCA of gpu002: write it as \"gpu002 mlx5_0\"");
  }
}

TEST_F(ExplicitDeclarations, anHcaThatIsNoRailIsRefusedWhereTheProfileHasRails) {
  auto& rails = cluster_.profiles.at("gpu-node").rails;
  rails = {{"mlx5_0"}, {"mlx5_4"}};
  fabric().cables[2].from_node = "gpu002 mlx5_4", fabric().cables[3].from_node = "gpu002 mlx5_0";
  fabric().cables[3].from_port = 1;
  EXPECT_THAT(said(), IsEmpty());
  fabric().cables[2].from_node = "gpu002 mlx5_1", fabric().cables[2].where = kCableAt;
  expectRefused(kCableAt, "gpu002 mlx5_1 is no rail of the profile gpu-node");
  fabric().cables[2].from_node = "gpu002", fabric().cables[2].from_port = 3;
  expectRefused(kCableAt, "gpu002 mlx5_2 is no rail of the profile gpu-node");
  rails.clear();  // nobody has said which HCAs there are
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(ExplicitDeclarations, anHcaOfANodeIsNoStorage) {
  fabric().cables[2].role = AttachedRole::Storage;  // gpu002 port 1
  fabric().cables[2].where = kCableAt;
  expectRefused(kCableAt,
                "gpu002 mlx5_0 is an HCA of a node, and the cable says that it is storage");
  fabric().cables[2].from_node = "gpu002 mlx5_0", fabric().cables[2].from_port = 1;
  expectRefused(kCableAt, "gpu002 mlx5_0 is an HCA of a node");
  fabric() = railCluster(2).fabrics.at("ib");  // and beside a shape
  fabric().cables = {{.from_node = "gpu001 mlx5_5",
                      .to_node = "leaf-su1-r0",
                      .to_port = 7,
                      .role = AttachedRole::Storage,
                      .where = kCableAt}};
  expectRefused(kCableAt, "gpu001 mlx5_5 is an HCA of a node");
}

// What was wrong: a set of ports with names, and sorted names. 4,096 leaves, spines and cores each,
// 786,432 cables.
TEST_F(Declarations, theLargestShapeIsExpandedInLittleTime) {
  cluster_ = railCluster(1);
  fabric().shape = inventory::FabricShape::FatTree;
  fabric().subnet_managers.clear();
  fabric().sus = fabric().leaves_per_su = fabric().spines_per_su = 64;
  fabric().leaf_down_ports = 64, fabric().uplinks_per_leaf_spine = 2;
  fabric().cores = 4096, fabric().switch_ports = 254;
  const auto begin = std::chrono::steady_clock::now();
  const auto topology = declaredTopology(cluster_, fabric());
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(topology) << topology.error().str();
  EXPECT_EQ(topology->links.size(), 786'434u);
  EXPECT_TRUE(std::ranges::is_sorted(topology->links));
  RecordProperty(
      "milliseconds",
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  EXPECT_LT(took, std::chrono::seconds(30)) << "a machine that is busy with other things";
}

TEST_F(Declarations, aFabricWithoutNodesIsNotLookedAt) {
  auto& unused = cluster_.fabrics["unused"] = fabric();
  unused.name = "unused";
  unused.sus = 1'000'000;
  EXPECT_THAT(said(), IsEmpty()) << "another rule says that nothing of it is planned";
}

std::vector<std::string> saidOf(const inventory::Cluster& cluster) {
  Diagnostics diagnostics;
  checkDeclarations(cluster, diagnostics);
  std::vector<std::string> out;
  for (const auto& one : diagnostics.all()) out.push_back(one.str());
  return out;
}

Topology topologyOf(const inventory::Cluster& cluster, const std::string& fabric) {
  return declaredTopology(cluster, cluster.fabrics.at(fabric)).value();
}

TEST(Apart, eachFabricHasItsOwnHcasSwitchesAndSeat) {
  const auto cluster = twoFabrics(3);
  EXPECT_THAT(saidOf(cluster), IsEmpty());
  const auto compute = topologyOf(cluster, "ib"), storage = topologyOf(cluster, "storage");
  EXPECT_TRUE(compute.devices.contains("gpu001 mlx5_1"));
  EXPECT_FALSE(compute.devices.contains("gpu001 mlx5_8"));
  EXPECT_TRUE(compute.devices.contains("controller mlx5_0"));
  EXPECT_TRUE(storage.devices.contains("gpu001 mlx5_8"));
  EXPECT_FALSE(storage.devices.contains("gpu001 mlx5_0"));
  EXPECT_TRUE(storage.devices.contains("controller mlx5_1"));
  EXPECT_TRUE(storage.devices.contains("st-leaf-su1-r0"));
  EXPECT_TRUE(storage.devices.contains("st-spine-001"));
  EXPECT_TRUE(storage.devices.at("controller mlx5_1").is_attached);
  EXPECT_EQ(toIbsimNet(storage).find("controller"), toIbsimNet(storage).find("controller-mlx5_1"))
      << "clients attach to the first device";
}

TEST(Apart, aSwitchIsInOneFabric) {
  auto cluster = twoFabrics(3);
  cluster.fabrics["storage"].switch_prefix.clear();
  EXPECT_THAT(saidOf(cluster),
              ElementsAre(AllOf(HasSubstr("the fabrics ib and storage both have the switch "
                                          "leaf-su1-r0, spine-001"),
                                HasSubstr("switch_prefix"))));
}

TEST(Apart, anHcaIsCabledToOneFabric) {
  auto cluster = twoFabrics(3);
  cluster.fabrics["ib"].cables = {{.from_node = "store1 mlx5_0",
                                   .to_node = "spine-001",
                                   .to_port = 15,
                                   .role = inventory::AttachedRole::Storage}};
  EXPECT_THAT(saidOf(cluster), IsEmpty());
  cluster.fabrics["storage"].cables = {{.from_node = "store1 mlx5_0",
                                        .to_node = "st-spine-001",
                                        .to_port = 15,
                                        .role = inventory::AttachedRole::Storage}};
  EXPECT_THAT(saidOf(cluster), ElementsAre(HasSubstr("both have cables of the HCA store1 mlx5_0")));
  cluster.fabrics["storage"].cables = {
      {.from_node = "gpu001 mlx5_0", .to_node = "st-spine-001", .to_port = 15}};
  EXPECT_THAT(saidOf(cluster),
              ElementsAre(HasSubstr("fabric storage has cables of gpu001 mlx5_0, which no rail"),
                          HasSubstr("both have cables of the HCA gpu001 mlx5_0")));
}

TEST(Apart, aFabricThatCannotBeExpandedHasNothingInCommon) {
  auto cluster = twoFabrics(3);
  cluster.fabrics["storage"].switch_prefix.clear();
  cluster.fabrics["storage"].nodes_per_su = 1;
  EXPECT_THAT(saidOf(cluster), ElementsAre(HasSubstr("fabric storage: 3 nodes are on it")));
}

TEST(ChosenFabric, isNamedWhereThereAreSeveral) {
  const auto cluster = twoFabrics(3);
  EXPECT_EQ(chosenFabric(cluster, "storage").value()->name, "storage");
  EXPECT_THAT(
      chosenFabric(cluster, "").error().text(),
      HasSubstr("the inventory has the fabrics ib, storage: name one of them (--fabric ib)"));
  EXPECT_EQ(chosenFabric(cluster, "stroage").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(chosenFabric(railCluster(2), "").value()->name, "ib");
  EXPECT_FALSE(chosenFabric({}, ""));
}

TEST(Facets, haveTheFabricsNameOnlyWhereThereAreSeveral) {
  auto cluster = twoFabrics(3);
  EXPECT_EQ(facetSuffix(cluster, cluster.fabrics.at("storage")), ".storage");
  EXPECT_EQ(facetSuffix(cluster, cluster.fabrics.at("ib")), ".ib");
  cluster.fabrics.at("storage").roce.emplace();
  EXPECT_EQ(facetSuffix(cluster, cluster.fabrics.at("ib")), "") << "the only InfiniBand fabric";
  EXPECT_EQ(baseOf("fabric.sm.a.b"), "fabric.sm");
  EXPECT_EQ(baseOf("fabric.sm"), "fabric.sm");
}

}  // namespace
}  // namespace muster::fabric::test
