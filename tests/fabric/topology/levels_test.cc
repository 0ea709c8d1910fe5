// SPDX-License-Identifier: Apache-2.0
// Which switch is a leaf and which a root, where ports that are no node's are cabled anywhere.
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Without what a shape says of levels: the cables must say it.
Topology withoutShape(Topology topology) {
  for (auto& entry : topology.devices) entry.second.level = 0;
  return topology;
}

void attach(Topology& topology, const std::string& hca, const Port& to) {
  Device device{hca, false, 1, {}, {}, inventory::AttachedRole::Storage};
  device.is_attached = true;
  topology.devices[hca] = device;
  plug(topology, {hca, 1}, to);
}

void addSwitchTo(Topology& topology, const std::string& name, const std::vector<Port>& uppers) {
  topology.devices[name] = {name, true, 16, {}, {}};
  int port = 16;
  for (const auto& upper : uppers) plug(topology, {name, port--}, upper);
}

class LevelsByCables : public ::testing::Test {
 protected:
  Topology two_ = withoutShape(declared(railCluster(8, 2)));  // 4 leaves, 4 spines
};

TEST_F(LevelsByCables, areTheShapes) {
  for (const auto& cluster : {railCluster(8, 2), railCluster(3)})
    EXPECT_EQ(switchLevels(withoutShape(declared(cluster))), switchLevels(declared(cluster)));
  auto three = railCluster(8, 2, 4, 2, 2);
  three.fabrics["ib"].cores = 2;
  EXPECT_EQ(switchLevels(withoutShape(declared(three))), switchLevels(declared(three)));
}

TEST_F(LevelsByCables, keepASpineWithAStoragePortARoot) {
  const auto roots = rootSwitches(two_);
  attach(two_, "store1 mlx5_0", {"spine-001", 15});
  EXPECT_EQ(rootSwitches(two_), roots);
  for (int spine = 2; spine <= 4; ++spine)
    attach(two_, fmt::format("ufm{} mlx5_0", spine), {fmt::format("spine-{:03}", spine), 15});
  EXPECT_EQ(rootSwitches(two_), roots) << "every spine has one";
}

TEST_F(LevelsByCables, makeALeafOfASwitchThatOnlyStorageUses) {
  const auto roots = rootSwitches(two_);
  addSwitchTo(two_, "storage-leaf", {{"spine-001", 15}, {"spine-002", 15}});
  attach(two_, "store1 mlx5_0", {"storage-leaf", 1});
  EXPECT_EQ(rootSwitches(two_), roots);
  EXPECT_EQ(switchLevels(two_).at("storage-leaf"), 1);
}

TEST_F(LevelsByCables, makeNoRootOfAStorageLeafThatReachesMoreThanASpine) {
  const auto roots = rootSwitches(two_);
  addSwitchTo(two_, "storage-leaf", {{"spine-001", 15}, {"spine-002", 15}});
  attach(two_, "store1 mlx5_0", {"storage-leaf", 1});
  int leaf = 0;
  for (const auto& spine : roots) unplug(two_, {spine, ++leaf});  // each lacks another leaf
  EXPECT_EQ(rootSwitches(two_), roots);
}

TEST_F(LevelsByCables, makeNoRootOfALeafWithoutNodes) {
  const auto roots = rootSwitches(two_);
  addSwitchTo(two_, "leaf-new", {{"spine-001", 15}, {"spine-002", 15}});
  EXPECT_EQ(rootSwitches(two_), roots);
  EXPECT_EQ(switchLevels(two_).at("leaf-new"), 1);
}

TEST_F(LevelsByCables, findRootsAboveTheOnlyLeafWithNodes) {
  auto one = withoutShape(declared(railCluster(2, 1, 4, 1, 2)));
  addSwitchTo(one, "leaf-new", {{"spine-001", 15}, {"spine-002", 15}});
  EXPECT_THAT(rootSwitches(one), ElementsAre("spine-001", "spine-002"));
}

TEST_F(LevelsByCables, keepCoresRootsWithPortsOnCoresAndSpines) {
  auto cluster = railCluster(8, 2, 4, 2, 2);
  cluster.fabrics["ib"].cores = 2;
  auto three = withoutShape(declared(cluster));
  attach(three, "store1 mlx5_0", {"core-001", 15});
  attach(three, "store2 mlx5_0", {"core-002", 15});
  attach(three, "store3 mlx5_0", {"spine-su1-01", 15});
  EXPECT_THAT(rootSwitches(three), ElementsAre("core-001", "core-002"));
}

TEST_F(LevelsByCables, countEveryHcaWhereNoNodeIsKnown) {
  auto found = two_;
  const auto levels = switchLevels(found);
  for (auto& entry : found.devices) entry.second.is_attached = !entry.second.is_switch;
  EXPECT_EQ(switchLevels(found), levels);
  found.links.clear();
  EXPECT_THAT(rootSwitches(found), IsEmpty());
}

TEST(LevelsOfAShape, doNotDependOnWhichLeavesHaveNodes) {
  auto cluster = railCluster(1, 2);  // nobody is in the second SU but the controller
  EXPECT_THAT(rootSwitches(declared(cluster)),
              ElementsAre("spine-001", "spine-002", "spine-003", "spine-004"));
}

TEST(LevelsOfATopologyFile, comeFromTheNodesOfTheInventory) {
  auto cluster = railCluster(8, 2);
  auto topology = declared(cluster);
  attach(topology, "store1 mlx5_0", {"spine-001", 15});
  attach(topology, "ufm1 mlx5_0", {"spine-002", 15});
  const auto roots = rootSwitches(topology);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::Explicit;
  fabric.topology = foundText(topology);
  EXPECT_EQ(rootSwitches(declared(cluster)), roots);
}

}  // namespace
}  // namespace muster::fabric::test
