// SPDX-License-Identifier: Apache-2.0
// Pairs without a way are counted as the walk of every pair counts them, and their cause is named.
#include "fabric/packet_paths/lost_pairs.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

class LostPairsTest : public ::testing::Test {
 protected:
  LostPairsTest() {
    int lid = 0;
    for (auto& [name, device] : found_.devices) {
      device.guid = fmt::format("0x{:016x}", ++lid);
      device.addresses[device.is_switch ? 0 : 1] = {device.guid, lid};
    }
    route();
  }
  /// Down where the HCA is below, else up by its LID.
  void route() {
    const auto levels = switchLevels(found_);
    for (const auto& [name, level] : levels)
      for (const auto& [hca, device] : found_.devices) {
        if (device.is_switch) continue;
        auto& table = tables_[found_.devices.at(name).guid];
        table.resize(found_.devices.size() + 1, kNoRoute);
        std::vector<int> up;
        int down = kNoRoute;
        for (const auto& link : found_.links)
          for (const auto& [own, peer] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
            if (own.node != name) continue;
            const auto other = levels.find(peer.node);
            if (peer.node == hca) down = own.number;
            if (other == levels.end()) continue;
            if (other->second > level) up.push_back(own.number);
            if (other->second < level && hangsAt(hca, peer.node)) down = own.number;
          }
        const auto lid = static_cast<std::size_t>(device.addresses.at(1).lid);
        table[lid] = down > 0 ? down : up.empty() ? kNoRoute : up[lid % up.size()];
      }
  }
  bool hangsAt(const std::string& hca, const std::string& leaf) {
    const auto* link = findLink(found_, {hca, 1});
    return link && (link->a.node == leaf || link->b.node == leaf);
  }
  std::vector<int>& table(const std::string& name) {
    return tables_.at(found_.devices.at(name).guid);
  }
  std::size_t lid(const std::string& hca) {
    return static_cast<std::size_t>(found_.devices.at(hca).addresses.at(1).lid);
  }
  LostPairs lost() { return lostPairs(found_, tables_, declared_); }
  std::string cause(const std::string* roots = nullptr, std::string deviations = {}) {
    return causeOf(lost(), {declared_, found_, "ftree", roots, std::move(deviations)});
  }

  Topology declared_ = declared(railCluster(6, 2, 4, 2, 2));
  Topology found_ = declared_;
  ForwardingTables tables_;
};

TEST_F(LostPairsTest, areNoneWhereEveryTableIsFull) {
  EXPECT_EQ(lost().pairs, 13u * 12);
  EXPECT_EQ(lost().lost, 0u);
  EXPECT_EQ(toString(lost()), "");
}

TEST_F(LostPairsTest, agreeWithWalkingEachPairWhateverIsInTheTables) {
  std::mt19937 random(7);
  const auto levels = switchLevels(declared_);
  for (int round = 0; round < 200; ++round) {
    const auto before = tables_;
    for (int spoil = 0; spoil < 6; ++spoil) {
      auto at = std::next(tables_.begin(), static_cast<std::ptrdiff_t>(random() % tables_.size()));
      at->second[random() % at->second.size()] = static_cast<int>(random() % 18) - 1;
    }
    const auto walked = walk(found_, tables_, levels);
    EXPECT_EQ(lost().pairs, walked.pairs);
    EXPECT_EQ(lost().lost, walked.lost) << round;
    tables_ = before;
  }
}

TEST_F(LostPairsTest, nameTheSwitchWhereMostOfThemEnd) {
  for (const auto* hca : {"gpu005 mlx5_0", "gpu006 mlx5_0"})
    table("spine-001")[lid(hca)] = kNoRoute;
  const auto now = lost();
  EXPECT_EQ(now.at, "spine-001");
  EXPECT_EQ(now.how, WayEnds::NoEntry);
  EXPECT_THAT(toString(now), HasSubstr("of 156 pairs have no route, such as "));
  EXPECT_THAT(toString(now), HasSubstr("end at spine-001, which has no entry"));
}

TEST_F(LostPairsTest, tellALoopAnEmptyPortAndAMissingTableApart) {
  const auto leaf = lid("gpu005 mlx5_0");
  table("leaf-su2-r0")[leaf] = 16;  // nothing is cabled there
  EXPECT_EQ(lost().how, WayEnds::AtAnEmptyPort);
  table("leaf-su2-r0")[leaf] = 9;  // up again, and down again
  for (const auto* spine : {"spine-001", "spine-002", "spine-003", "spine-004"})
    EXPECT_NE(table(spine)[leaf], kNoRoute);
  EXPECT_EQ(lost().how, WayEnds::InALoop);
  tables_.erase(found_.devices.at("leaf-su2-r0").guid);
  EXPECT_EQ(lost().how, WayEnds::NoTable);
  EXPECT_THAT(cause(), HasSubstr("has not written a table to leaf-su2-r0"));
}

TEST_F(LostPairsTest, nameARootThatOpensmWasNotTold) {
  table("spine-001")[lid("gpu005 mlx5_0")] = kNoRoute;
  std::string roots;
  for (const auto* spine : {"spine-002", "spine-003", "spine-004"})
    roots += found_.devices.at(spine).guid + "\n";
  EXPECT_THAT(cause(&roots), HasSubstr("root_guids does not list spine-001"));
  roots += found_.devices.at("spine-001").guid + "\n";
  EXPECT_THAT(cause(&roots, "plug in the cable"), HasSubstr("plug in the cable"));
  EXPECT_THAT(cause(&roots), HasSubstr("routing engine ftree leaves them out"));
  EXPECT_THAT(cause(), HasSubstr("spine-001, spine-002, spine-003, spine-004 must be roots"));
}

TEST_F(LostPairsTest, nameAnUndeclaredHcaAboveTheLeaves) {
  found_.devices["laptop mlx5_0"] = {"laptop mlx5_0", false, 1, "0x99", {{1, {"0x99", 40}}}};
  plug(found_, {"laptop mlx5_0", 1}, {"spine-001", 15});
  EXPECT_EQ(lost().lost, 13u) << "nobody has an entry for it; its own switch has one for everybody";
  const std::string all = [&] {
    std::string out;
    for (const auto& [name, device] : found_.devices) out += device.guid + "\n";
    return out;
  }();
  EXPECT_THAT(cause(&all), HasSubstr("laptop mlx5_0 is cabled to spine-001, which is no leaf"));
  found_.devices["other mlx5_0"] = {"other mlx5_0", false, 1, "0x98", {{1, {"0x98", 41}}}};
  plug(found_, {"other mlx5_0", 1}, {"spine-002", 15});
  const auto before = lost().pairs;
  EXPECT_EQ(before, 13u * 12 + 2 * 2 * 13) << "two that nobody declared are nobody's pair";
}

}  // namespace
}  // namespace muster::fabric::test
