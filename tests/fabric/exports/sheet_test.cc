// SPDX-License-Identifier: Apache-2.0
// The cabling sheet: each cable twice, once for each label.
#include "fabric/exports/sheet.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

inventory::Cluster racked() {
  auto cluster = railCluster(3);
  for (auto& node : cluster.nodes) {
    node.rack = "A01";
    node.unit = 10 + static_cast<int>(&node - cluster.nodes.data());
  }
  cluster.fabrics["ib"].switches = {{{"leaf-su1-r0", "leaf-su1-r1"}, "A01", 40, 1},
                                    {{"spine-001", "spine-002"}, "B,7", 20, 2}};
  return cluster;
}

std::string sheet(const inventory::Cluster& cluster, const std::string& rack = {}) {
  const auto& fabric = cluster.fabrics.at("ib");
  auto topology = declared(cluster);
  return cablingCsv(topology, placesOf(cluster, fabric, topology), rack);
}

TEST(CablingSheet, givesASpreadsheetNothingToCompute) {
  auto cluster = railCluster(2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::Explicit;
  fabric.subnet_managers.clear();
  fabric.cables = {{.from_node = "gpu001", .from_port = 1, .to_node = "=cmd|x", .to_port = 1},
                   {.from_node = "gpu002", .from_port = 1, .to_node = "=cmd|x", .to_port = 2}};
  const auto text = sheet(cluster);
  EXPECT_THAT(text, HasSubstr(",'=cmd|x,"));
  for (const char* computed : {",=cmd", "\n=cmd", "\"=cmd"})
    EXPECT_THAT(text, Not(HasSubstr(computed)));
}

TEST(CablingSheet, hasALabelForEachEndOfEachCable) {
  auto cluster = racked();
  auto text = sheet(cluster);
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')),
            1 + 2 * declared(cluster).links.size());
  EXPECT_THAT(text, HasSubstr("\nA01,10,gpu001 mlx5_0,1,gpu001 mlx5_0/1 > A01 U40 "
                              "leaf-su1-r0/1,A01,40,leaf-su1-r0,1,4xHDR,"));
  EXPECT_THAT(text, HasSubstr("\nA01,40,leaf-su1-r0,1,leaf-su1-r0/1 > A01 U10 gpu001 "
                              "mlx5_0/1,A01,10,gpu001 mlx5_0,1,4xHDR,"));
  EXPECT_THAT(text, HasSubstr("\n\"B,7\",22,spine-002,2,"));
}

TEST(CablingSheet, ofOneRackHasItsOwnEndsOnly) {
  auto text = sheet(racked(), "A01");
  EXPECT_THAT(text, Not(HasSubstr("\n\"B,7\"")));
  EXPECT_THAT(text, HasSubstr("\"leaf-su1-r0/9 > B,7 U20 spine-001/1\",\"B,7\",20,spine-001,1"));
}

TEST(CablingSheet, saysWhatNobodyPlaced) {
  auto cluster = racked();
  cluster.fabrics["ib"].switches.clear();
  EXPECT_THAT(sheet(cluster), HasSubstr("gpu001 mlx5_0/1 > ? leaf-su1-r0/1,,,leaf-su1-r0,1"));
}

TEST(CablingSummary, countsAndWarnsOfUnevenUplinks) {
  auto cluster = railCluster(3);
  auto topology = declared(cluster);
  EXPECT_EQ(cablingSummary(topology),
            "7 HCAs, 7 cables to them, 4 between switches; switches by level: 2 2\n");
  plug(topology, {"leaf-su1-r0", 11}, {"spine-001", 3});
  EXPECT_THAT(cablingSummary(topology),
              HasSubstr("warning: leaf-su1-r0 has 2 cables to spine-001, but 1 to spine-002"));
}

}  // namespace
}  // namespace muster::fabric::test
