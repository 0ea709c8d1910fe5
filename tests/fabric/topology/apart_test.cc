// SPDX-License-Identifier: Apache-2.0
// Two fabrics of one inventory have no device in common.
#include "fabric/topology/apart.h"

#include "base/diagnostic.h"
#include "fabric/discovery/discovery.h"
#include "fabric/facets.h"
#include "inventory/model/fabric_membership.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>

namespace muster::fabric::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> said(const inventory::Cluster& cluster) {
  Diagnostics diagnostics;
  checkApart(cluster, diagnostics);
  std::vector<std::string> out;
  for (const auto& one : diagnostics.all()) out.push_back(one.str());
  return out;
}

Topology topologyOf(const inventory::Cluster& cluster, const std::string& fabric) {
  return declaredTopology(cluster, cluster.fabrics.at(fabric)).value();
}

TEST(Apart, eachFabricHasItsOwnHcasSwitchesAndSeat) {
  const auto cluster = twoFabrics(3);
  EXPECT_THAT(said(cluster), IsEmpty());
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
  EXPECT_THAT(said(cluster),
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
  EXPECT_THAT(said(cluster), IsEmpty());
  cluster.fabrics["storage"].cables = {{.from_node = "store1 mlx5_0",
                                        .to_node = "st-spine-001",
                                        .to_port = 15,
                                        .role = inventory::AttachedRole::Storage}};
  EXPECT_THAT(said(cluster), ElementsAre(HasSubstr("both have cables of the HCA store1 mlx5_0")));
  cluster.fabrics["storage"].cables = {
      {.from_node = "gpu001 mlx5_0", .to_node = "st-spine-001", .to_port = 15}};
  EXPECT_THAT(said(cluster),
              ElementsAre(HasSubstr("fabric storage has cables of gpu001 mlx5_0, which no rail"),
                          HasSubstr("both have cables of the HCA gpu001 mlx5_0")));
}

TEST(Apart, aFabricThatCannotBeExpandedIsLeftToItsPhase) {
  auto cluster = twoFabrics(3);
  cluster.fabrics["storage"].nodes_per_su = 1;
  EXPECT_THAT(said(cluster), IsEmpty());
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
