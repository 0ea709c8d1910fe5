// SPDX-License-Identifier: Apache-2.0
// Several fabrics in one inventory: what is read, and what is refused by name.
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/fabric_positions.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "tests/inventory/inventory_fixture.h"

#include <nlohmann/json.hpp>

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class FabricRulesTest : public InventoryTest {
 protected:
  /// The small inventory with a storage fabric beside "ib": gpu-node has two HCAs on the one and
  /// one on the other.
  static std::string two() {
    auto yaml = with("  ib:\n    rails: 2",
                     "  storage: {purpose: storage, controller_hca: mlx5_1, switch_prefix: st-, "
                     "subnet_managers: [controller]}\n  ib:\n    rails: 2");
    yaml = with("fabric: ib, gates",
                "fabric: [storage, ib], rails: " + std::string(kRails) + ", gates", yaml);
    return with("subnet_managers: [gpu001, controller]", "subnet_managers: [controller, gpu001]",
                yaml);
  }
  std::vector<std::string> said(std::string_view old_text, std::string_view new_text) {
    return lines(loadYaml(with(old_text, new_text, two())));
  }
  static constexpr std::string_view kRails =
      "[{hca: mlx5_0, fabric: ib}, {hca: mlx5_1, fabric: ib}, {hca: mlx5_2, fabric: storage}]";
};

TEST_F(FabricRulesTest, aProfileIsOnTwoFabricsWithARailEach) {
  const auto loaded = loadYaml(two());
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_THAT(lines(loaded), IsEmpty());
  const auto& cluster = *loaded.cluster;
  const auto& profile = cluster.profiles.at("gpu-node");
  EXPECT_EQ(profile.fabric, "ib") << "the compute fabric, in whichever order they are listed";
  EXPECT_THAT(profile.other_fabrics, ElementsAre("storage"));
  EXPECT_THAT(hcasOn(profile, cluster.fabrics.at("ib")), ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_THAT(hcasOn(profile, cluster.fabrics.at("storage")), ElementsAre("mlx5_2"));
  EXPECT_EQ(fabricOfHca(profile, "mlx5_2"), "storage");
  EXPECT_EQ(fabricOfHca(profile, "mlx5_9"), "");
  ASSERT_EQ(managedFabrics(cluster).size(), 2u);
  EXPECT_EQ(managedFabrics(cluster).front()->name, "ib");
  EXPECT_EQ(mainFabric(cluster)->name, "ib");
  EXPECT_EQ(scalableUnitsOf(cluster).at(NodeName("gpu001")), "ib-1");
  EXPECT_THAT(showText(cluster), HasSubstr("ib,storage"));
}

TEST_F(FabricRulesTest, theOrderOfTheListMeansNothing) {
  const auto one = loadYaml(two()), other = loadYaml(with("[storage, ib]", "[ib, storage]", two()));
  ASSERT_TRUE(one.cluster && other.cluster);
  EXPECT_EQ(one.cluster->digest, other.cluster->digest);
  const auto json = nlohmann::json::parse(toJson(*one.cluster));
  EXPECT_EQ(json["profiles"]["gpu-node"]["fabric"], (nlohmann::json{"ib", "storage"}));
  EXPECT_EQ(json["nodes"][0]["fabric"], "ib");
  EXPECT_EQ(json["nodes"][0]["other_fabrics"], nlohmann::json::array({"storage"}));
}

TEST_F(FabricRulesTest, aListOfOneIsThatOne) {
  const auto one = loadYaml(kSmall),
             list = loadYaml(with("fabric: ib, gates", "fabric: [ib], gates"));
  ASSERT_TRUE(one.cluster && list.cluster) << checkText(list);
  EXPECT_EQ(one.cluster->digest, list.cluster->digest);
}

TEST_F(FabricRulesTest, exactlyOneIsTheComputeFabric) {
  EXPECT_THAT(said("purpose: storage, ", ""),
              Contains(AllOf(HasSubstr("error: profile gpu-node is on 2 compute fabrics (ib, "
                                       "storage); jobs communicate over one"),
                             HasSubstr("purpose: storage"))));
  EXPECT_THAT(said("  ib:\n    rails: 2", "  ib:\n    purpose: storage\n    rails: 2"),
              Contains(HasSubstr("none of which is a compute fabric")));
}

TEST_F(FabricRulesTest, everyRailIsOnOneFabricOfTheProfile) {
  EXPECT_THAT(said("{hca: mlx5_2, fabric: storage}", "{hca: mlx5_2}"),
              AllOf(Contains(HasSubstr("error: profile gpu-node: rail 2 (mlx5_2) is on no fabric")),
                    Contains(HasSubstr("on the fabric storage, and none of its rails is"))));
  EXPECT_THAT(said("{hca: mlx5_2, fabric: storage}", "{hca: mlx5_2, fabric: stroage}"),
              Contains(HasSubstr("\"stroage\" is not declared under fabric")));
  EXPECT_THAT(said("rails: " + std::string(kRails) + ", ", ""),
              Contains(AllOf(HasSubstr("and no rail says which HCA is on which"),
                             HasSubstr("write rails: [{hca: mlx5_0, fabric: ib}"))));
  EXPECT_THAT(said("fabric: [storage, ib]", "fabric: ib"),
              Contains(HasSubstr("rail 2 (mlx5_2) is on the fabric storage, the profile is not")));
  EXPECT_THAT(said("{hca: mlx5_1, fabric: ib}", "{hca: mlx5_0, fabric: storage}"),
              Contains(HasSubstr("have the same HCA mlx5_0")))
      << "one HCA on two fabrics";
}

TEST_F(FabricRulesTest, namesThatAreNoFabrics) {
  EXPECT_THAT(said("[storage, ib]", "[storage, ibb]"),
              Contains(HasSubstr("\"ibb\" is not declared under fabric")));
  EXPECT_THAT(said("[storage, ib]", "[storage, ib, ib]"),
              Contains(HasSubstr("the fabric ib is listed twice")));
  EXPECT_THAT(said("[storage, ib]", "[]"), Contains(HasSubstr("an empty list of fabrics")));
  EXPECT_THAT(said("[storage, ib]", "[[ib]]"), Contains(HasSubstr("a name of `fabric`")));
  EXPECT_THAT(said("[storage, ib]", "{ib: 1}"),
              Contains(HasSubstr("a name of `fabric`, or a list")));
}

TEST_F(FabricRulesTest, twoSubnetManagersNeedTwoPorts) {
  EXPECT_THAT(said("controller_hca: mlx5_1, ", ""),
              Contains(AllOf(HasSubstr("the fabrics ib and storage have the same HCA of the "
                                       "controller, mlx5_0"),
                             HasSubstr("controller_hca: mlx5_1"))));
  EXPECT_THAT(said("controller_hca: mlx5_1, switch_prefix: st-, subnet_managers: [controller]",
                   "roce: {}, switch_prefix: st-"),
              IsEmpty())
      << "Ethernet has no subnet manager";
  EXPECT_THAT(said("subnet_managers: [controller]}", "subnet_managers: [controller, gpu001]}"),
              Contains(HasSubstr("gpu001 stands by for the fabrics ib and storage")));
}

TEST_F(FabricRulesTest, aNodeIsInOneNvlinkDomain) {
  auto yaml = with("purpose: storage, ",
                   "purpose: storage, nvlink_domains: {a: {nodes: \"gpu[001-002]\"}}, ", two());
  yaml = with("  ib:\n    rails: 2",
              "  ib:\n    nvlink_domains: {b: {nodes: gpu002}}\n    rails: 2", yaml);
  EXPECT_THAT(lines(loadYaml(yaml)),
              Contains(HasSubstr("gpu002 is in NVLink domains of the fabrics ib and storage")));
}

TEST_F(FabricRulesTest, aShapesCablesHaveASpeedAClass) {
  const auto fabric = [this](const std::string& keys) {
    return loadYaml(with("  ib:\n    rails: 2", "  ib:\n    " + keys + "\n    rails: 2"));
  };
  const auto loaded = fabric("link_node_leaf: 2xNDR\n    link_leaf_spine: 4xNDR");
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_EQ(loaded.cluster->fabrics.at("ib").nodeLink(), "2xNDR");
  EXPECT_EQ(loaded.cluster->fabrics.at("ib").leafSpineLink(), "4xNDR");
  EXPECT_EQ(loaded.cluster->fabrics.at("ib").spineCoreLink(), "4xHDR");
  EXPECT_THAT(lines(fabric("link_node_leaf: fast")),
              ElementsAre(HasSubstr("\"fast\" is not an InfiniBand width and speed")));
  EXPECT_THAT(lines(fabric("link_spine_core: 4xNDR")),
              ElementsAre(HasSubstr("a fabric without cores has no cables between spines and "
                                    "cores")));
  EXPECT_THAT(said("purpose: storage, ",
                   "purpose: storage, link_node_leaf: 4xNDR, shape: explicit, cables: [{from: "
                   "gpu001, to: sw1, to_port: 1}], "),
              Contains(AllOf(HasSubstr("the shape explicit makes no cables, so it has no "
                                       "link_node_leaf"),
                             HasSubstr("write link at each cable"))));
}

TEST_F(FabricRulesTest, aNodeIsInOneNvlinkDomainOfAFabric) {
  const auto domains = [this](const std::string& text) {
    return lines(loadYaml(
        with("  ib:\n    rails: 2", "  ib:\n    nvlink_domains: {" + text + "}\n    rails: 2")));
  };
  EXPECT_THAT(domains("a: {nodes: gpu001}, b: {nodes: gpu002}"), IsEmpty());
  EXPECT_THAT(domains("a: {nodes: \"gpu[001-002]\"}, b: {nodes: \"login1,gpu002\"}"),
              ElementsAre(AllOf(HasSubstr("error: gpu002 is in the NVLink domains a and b"),
                                HasSubstr("cluster.yaml:"), HasSubstr("a node is in one domain"))));
}

TEST_F(FabricRulesTest, nvlinkDomainsListNodesThatThereAre) {
  const auto domains = [this](const std::string& text) {
    return lines(loadYaml(
        with("  ib:\n    rails: 2", "  ib:\n    nvlink_domains: {" + text + "}\n    rails: 2")));
  };
  EXPECT_THAT(domains("a: {nodes: \"gpu[001-002],gpu0002\"}"),
              ElementsAre(AllOf(HasSubstr("the NVLink domain a lists gpu0002, which is no node"),
                                HasSubstr("did you mean gpu00"))));
  EXPECT_THAT(
      domains("a: {nodes: \"row7-[10-20]\"}"),
      ElementsAre(AllOf(HasSubstr("lists row7-10, row7-11, row7-12 and 8 more, which are no node"),
                        HasSubstr("take it out of the domain"))));
}

TEST_F(FabricRulesTest, nvlinkDomainsAreOfAComputeFabric) {
  EXPECT_THAT(
      said("purpose: storage, ",
           "purpose: storage, nvlink_domains: {a: {nodes: \"gpu[001-002]\"}}, "),
      ElementsAre(AllOf(HasSubstr("cluster.yaml:16:47:"),
                        HasSubstr("error: the fabric storage is for storage: NVLink domains "
                                  "are of jobs"),
                        HasSubstr("declare them at the compute fabric"))));
}

TEST_F(FabricRulesTest, ethernetHasNoSubnetManagerAndNoPartitions) {
  EXPECT_THAT(
      said("controller_hca: mlx5_1, ",
           "roce: {}, partitions: {batch: {pkey: 0x10, full: [gpu001]}}, "),
      UnorderedElementsAre(
          AllOf(HasSubstr("error: a fabric with roce is Ethernet and has no subnet manager"),
                HasSubstr("remove subnet_managers, or roce")),
          HasSubstr("error: a fabric with roce is Ethernet: nothing gives its ports")));
}

TEST_F(FabricRulesTest, partitionsAndPlacesKnowTheNodesOfBoth) {
  EXPECT_THAT(said("purpose: storage, ",
                   "purpose: storage, partitions: {batch: {pkey: 0x10, full: [gpu001]}}, "
                   "places: [\"gpu[001-002]\", login1], "),
              IsEmpty());
  EXPECT_THAT(said("purpose: storage, ", "purpose: storage, places: [gpu001], "),
              Contains(HasSubstr("places of the fabric storage leave out")));
}

TEST_F(FabricRulesTest, aFabricWithoutNodesIsNamed) {
  const auto yaml = with("  ib:\n    rails: 2", "  storage: {rails: 1}\n  ib:\n    rails: 2");
  const auto loaded = loadYaml(yaml);
  EXPECT_THAT(lines(loaded),
              ElementsAre(HasSubstr("warning: no node is on the fabric storage: nothing of it is "
                                    "planned, checked or exported")));
  ASSERT_TRUE(loaded.cluster);
  EXPECT_EQ(managedFabrics(*loaded.cluster).size(), 1u);
  EXPECT_EQ(mainFabric(*loaded.cluster)->name, "ib");
}

TEST_F(FabricRulesTest, explicitShapesNameTheirSwitchesThemselves) {
  EXPECT_THAT(said("purpose: storage, ",
                   "purpose: storage, shape: explicit, cables: [{from: gpu001, to: sw1, to_port: "
                   "1}], "),
              Contains(HasSubstr("the shape explicit gives no names")));
}

}  // namespace
}  // namespace muster::inventory
