// SPDX-License-Identifier: Apache-2.0
// A rack's power: never exceeded, never stepped up at once, always given back.
#include "validate/power_budget.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/model/racks.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::validate {
namespace {

using std::chrono::seconds;

class PowerBudgetTest : public testing::Test {
 protected:
  PowerBudgetTest() {
    auto& profile = cluster_.profiles["hgx"];
    profile.name = "hgx", profile.power_watts = 10'000;
    cluster_.racks["A"] = {.name = "A", .power_watts = 40'000, .cooling_watts = 32'000};
    for (int i = 0; i < 16; ++i) {
      inventory::Node node;
      node.name = NodeName("n" + std::to_string(i));
      node.profile = "hgx";
      node.rack = i < 8 ? "A" : "B";
      cluster_.nodes.push_back(node);
    }
  }
  const inventory::Node& node(int i) { return cluster_.nodes[static_cast<std::size_t>(i)]; }

  inventory::Cluster cluster_;
  PowerBudget::Time now_{};
};

TEST_F(PowerBudgetTest, theSmallerOfPowerAndCoolingCounts) {
  PowerBudget budget(cluster_);
  for (int i = 0; i < 3; ++i, now_ += seconds(2)) EXPECT_FALSE(budget.take(node(i), now_));
  const auto why = budget.take(node(3), now_);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("30.0 of 32.0 kW"), std::string::npos) << *why;
  budget.giveBack(node(1).name);
  EXPECT_FALSE(budget.take(node(3), now_));
}

TEST_F(PowerBudgetTest, startsInARackAreStaggeredOthersAreNot) {
  PowerBudget budget(cluster_);
  EXPECT_FALSE(budget.take(node(0), now_));
  EXPECT_TRUE(budget.take(node(1), now_));
  EXPECT_FALSE(budget.take(node(8), now_));  // another rack
  EXPECT_TRUE(budget.take(node(9), now_));   // which has no declared budget, but steps up no faster
  EXPECT_FALSE(budget.take(node(1), now_ + PowerBudget::kStagger));
}

TEST_F(PowerBudgetTest, takingAndGivingBackTwiceIsOnce) {
  PowerBudget budget(cluster_);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(budget.take(node(0), now_));
  budget.giveBack(node(0).name);
  budget.giveBack(node(0).name);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(budget.take(node(i), now_ += seconds(2)));
  EXPECT_TRUE(budget.take(node(3), now_ += seconds(2)));
}

TEST_F(PowerBudgetTest, whatRunsAlreadyCountsEvenWithoutRoom) {
  PowerBudget budget(cluster_);
  for (int i = 0; i < 5; ++i) budget.takeRunning(node(i));
  EXPECT_TRUE(budget.take(node(5), now_));
  for (int i = 0; i < 3; ++i) budget.giveBack(node(i).name);
  EXPECT_FALSE(budget.take(node(5), now_));
}

TEST_F(PowerBudgetTest, aNodeLargerThanItsRackRunsAlone) {
  cluster_.profiles["hgx"].power_watts = 50'000;
  PowerBudget budget(cluster_);
  EXPECT_FALSE(budget.take(node(0), now_));
  EXPECT_TRUE(budget.take(node(1), now_ + seconds(60)));
}

TEST_F(PowerBudgetTest, isNeverExceededInAnyOrder) {
  std::mt19937 random(1);
  PowerBudget budget(cluster_);
  std::set<int> running;
  for (int step = 0; step < 5'000; ++step) {
    now_ += std::chrono::milliseconds(random() % 3'000);
    const int i = static_cast<int>(random() % 8);
    if (random() % 2) {
      if (!budget.take(node(i), now_)) running.insert(i);
    } else {
      budget.giveBack(node(i).name);
      running.erase(i);
    }
    ASSERT_LE(running.size(), 3u);
  }
}

TEST_F(PowerBudgetTest, turnsSayHowLongWaitingMayTake) {
  PowerBudget budget(cluster_);
  EXPECT_EQ(budget.turns("B"), 1);
  EXPECT_GE(budget.turns("A"), 3);  // eight nodes, three at once
  EXPECT_LE(budget.turns("A"), 4);
}

TEST_F(PowerBudgetTest, whatIsNotDeclaredIsEstimatedOnTheHighSide) {
  inventory::Profile profile;
  profile.expect.gpus = 8;
  EXPECT_EQ(wattsOf(profile), 10'200);
  profile.power_watts = 6'000;
  EXPECT_EQ(wattsOf(profile), 6'000);
}

}  // namespace
}  // namespace muster::validate
