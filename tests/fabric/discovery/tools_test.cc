// SPDX-License-Identifier: Apache-2.0
// What the tools of infiniband-diags print.
#include "fabric/discovery/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

TEST(PkeyTables, areAllThereOrNone) {
  const std::vector<PkeyPort> asked = {{5, 1}, {11, 33}};
  const auto tables = parsePkeyTables("5 1 0x7fff 0x8010\n11 33\n", asked);
  ASSERT_TRUE(tables);
  EXPECT_EQ(tables->at({5, 1}), (PkeyTable{0x7fff, 0x8010}));
  EXPECT_TRUE(tables->at({11, 33}).empty());
  for (const char* bad : {"5 1 0x7fff\n", "5 1 0x7fff\n11 33 0x1ffff\n", "5 1 0x7fff\n11 33 7fff\n",
                          "5 1\nmuster\n", ""})
    EXPECT_FALSE(parsePkeyTables(bad, asked)) << bad;
}

TEST(ToolAnswers, areReadOrRefused) {
  auto info = parseSmInfo(
      "sminfo: sm lid 1 sm guid 0x100001, activity count 192 priority 14 state 3 SMINFO_MASTER\n");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->guid, "0x0000000000100001");
  EXPECT_TRUE(info->master);
  EXPECT_FALSE(
      parseSmInfo(
          "sminfo: sm lid 3 sm guid 0x5, activity count 1 priority 1 state 2 SMINFO_STANDBY")
          ->master);
  EXPECT_FALSE(parseSmInfo(""));

  auto keys = parsePkeys(
      "   0: 0x7fff 0x8010 0x0000 0x0000\n   8: 0x0000 0x0000\n64 pkeys capacity for this port\n");
  ASSERT_TRUE(keys);
  EXPECT_EQ(*keys, (PkeyTable{0x7fff, 0x8010}));
  EXPECT_FALSE(parsePkeys("   0: 0x7fff 0x8010 0x0000 0x0000\n"));

  EXPECT_EQ(
      troubleIn("ibwarn: [9439] sim_connect: attached as client 0 at node \"controller-mlx5_0\"\n"),
      "");
  EXPECT_THAT(troubleIn("./libibnetdisc/query_smp.c:186; umad (DR path slid 0; dlid 0; 0,1,1 Attr "
                        "0x11:0) bad status 110; Connection timed out\n"),
              HasSubstr("timed out"));

  EXPECT_EQ(guidsInSubnetList("{ CA-SM Ports:01 SystemGUID:0000000000100000 "
                              "NodeGUID:0000000000100000 } { SW NodeGUID:00000000002000ab }\n"),
            (std::set<std::string>{"0x0000000000100000", "0x00000000002000ab"}));
}

// Two half-lines of a switch with in-network reduction, as OpenSM 3.3.24 writes them. A discovery
// knows the GUIDs of those that it leaves out; a name alone says nothing.
TEST(SubnetList, hasTheAggregationNodesToo) {
  constexpr std::string_view kList =
      "{ SW Ports:29 SystemGUID:0000000000200000 NodeGUID:0000000000200000 "
      "PortGUID:0000000000200000 VenID:000000 DevID:0000 Rev:000000A1 {leaf0} LID:0002 PN:29 } "
      "{ CA Ports:01 SystemGUID:0000000000100010 NodeGUID:0000000000100010 "
      "PortGUID:0000000000100011 VenID:00000000 DevID:0000 Rev:000000A1 {Mellanox Technologies "
      "Aggregation Node} LID:0017 PN:01 } PHY=4x LOG=ACT SPD=50\n"
      "{ CA Ports:01 SystemGUID:0000000000100010 NodeGUID:0000000000100010 "
      "PortGUID:0000000000100011 VenID:000000 DevID:0000 Rev:000000A1 {Mellanox Technologies "
      "Aggregation Node} LID:0017 PN:01 } "
      "{ SW Ports:29 SystemGUID:0000000000200000 NodeGUID:0000000000200000 "
      "PortGUID:0000000000200000 VenID:00000000 DevID:0000 Rev:000000A1 {leaf0} LID:0002 PN:29 } "
      "PHY=4x LOG=ACT SPD=50\n"
      "{ CA Ports:01 SystemGUID:0000000000100020 NodeGUID:0000000000100020 "
      "PortGUID:0000000000100021 VenID:000000 DevID:0000 Rev:000000A1 {gpu001 mlx5_0} LID:0018 "
      "PN:01 } "
      "{ SW Ports:29 SystemGUID:0000000000200001 NodeGUID:0000000000200001 "
      "PortGUID:0000000000200001 VenID:00000000 DevID:0000 Rev:000000A1 {Mellanox Technologies "
      "Aggregation Node} LID:0003 PN:01 } PHY=4x LOG=ACT SPD=50\n";
  EXPECT_EQ(guidsInSubnetList(kList),
            (std::set<std::string>{"0x0000000000200000", "0x0000000000100010", "0x0000000000100020",
                                   "0x0000000000200001"}));
}

}  // namespace
}  // namespace muster::fabric::test
