// SPDX-License-Identifier: Apache-2.0
// The tables of the switches, walked.
#include "fabric/packet_paths/forwarding.h"
#include "fabric/topology/topology.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two leaves, two spines, an HCA on each leaf (LIDs 1 and 2); switches have GUIDs by their names.
class Forwarding : public ::testing::Test {
 protected:
  Forwarding() {
    for (auto [name, lid] : {std::pair("a mlx5_0", 1), std::pair("b mlx5_0", 2)})
      found_.devices[name] = {name, false, 1, "0x0", {{1, {"0x0", lid}}}};
    for (auto name : {"leaf1", "leaf2", "spine1", "spine2"})
      found_.devices[name] = {name, true, 8, name, {}};
    plug(found_, {"a mlx5_0", 1}, {"leaf1", 1});
    plug(found_, {"b mlx5_0", 1}, {"leaf2", 1});
    for (int spine : {1, 2})
      for (int leaf : {1, 2})
        plug(found_, {fmt::format("leaf{}", leaf), 4 + spine},
             {fmt::format("spine{}", spine), leaf});
    levels_ = switchLevels(found_);
    tables_ = {{"leaf1", {kNoRoute, 1, 5}},
               {"leaf2", {kNoRoute, 5, 1}},
               {"spine1", {kNoRoute, 1, 2}},
               {"spine2", {kNoRoute, 1, 2}}};
  }
  Reachability walked() { return walk(found_, tables_, levels_); }

  Topology found_;
  ForwardingTables tables_;
  std::map<std::string, int> levels_;
};

TEST_F(Forwarding, reachesEveryPairAndCountsTheBusiestCable) {
  auto reach = walked();
  EXPECT_EQ(reach.pairs, 2u);
  EXPECT_EQ(reach.lost, 0u);
  EXPECT_EQ(reach.down_up, 0u);
  EXPECT_EQ(reach.busiest_uplink, 1);
}

TEST_F(Forwarding, losesAPairWithoutEntryOrIntoANakedPort) {
  tables_["spine1"][2] = kNoRoute;
  EXPECT_THAT(walked().examples, ElementsAre("a mlx5_0 to b mlx5_0"));
  tables_["spine1"][2] = 7;
  EXPECT_EQ(walked().lost, 1u);
  tables_.erase("leaf2");
  EXPECT_EQ(walked().lost, 2u);
}

TEST_F(Forwarding, endsALoop) {
  tables_["spine1"][2] = 1;  // back to leaf 1, which sends it up again
  EXPECT_EQ(walked().lost, 1u);
}

TEST_F(Forwarding, seesAWayThatGoesDownAndUpAgain) {
  found_.devices["leaf3"] = {"leaf3", true, 8, "leaf3", {}};
  plug(found_, {"leaf3", 5}, {"spine1", 3});
  plug(found_, {"leaf3", 6}, {"spine2", 3});
  levels_["leaf3"] = 1;
  tables_["spine1"][2] = 3;
  tables_["leaf3"] = {kNoRoute, 5, 6};
  auto reach = walked();
  EXPECT_EQ(reach.lost, 0u);
  EXPECT_EQ(reach.down_up, 1u);
}

constexpr std::string_view kDump =
    R"(Unicast lids [0x0-0x3] of switch DR path slid 0; dlid 0; 0,1,33,57 guid 0x0000000000200007 (leaf-su1-r7):
  Lid  Out   Destination
       Port     Info
0x0001 064
0x0003 034
2 valid lids dumped
)";

TEST(ForwardingTables, readWhatDumpFtsPrints) {
  auto tables = parseForwardingTables(kDump);
  ASSERT_TRUE(tables) << tables.error().str();
  EXPECT_THAT(tables->at("0x0000000000200007"), ElementsAre(kNoRoute, 64, kNoRoute, 34));
}

TEST(ForwardingTables, refuseWhatIsNone) {
  for (auto text : {"0x0001 064\n", "Unicast lids [0x0-0x3] of switch Lid 2\n",
                    "Unicast lids [0] of switch guid 0x1 (a):\n0x0001\n",
                    "Unicast lids [0] of switch guid 0x1 (a):\n0xffff 001\n"}) {
    auto tables = parseForwardingTables(text);
    ASSERT_FALSE(tables) << text;
    EXPECT_EQ(tables.error().code(), ErrorCode::Corrupt);
    EXPECT_THAT(tables.error().text(), HasSubstr("dump_fts line"));
  }
}

}  // namespace
}  // namespace muster::fabric::test
