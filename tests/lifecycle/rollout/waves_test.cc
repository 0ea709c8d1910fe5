// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/waves.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/model/rollout_policy.h"
#include "tests/lifecycle/rollout/rollout_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::lifecycle {
namespace {

using testing::ElementsAre;

TEST(RolloutWaves, canariesComeFromDifferentRacksAndWavesGrow) {
  const auto cluster = clusterOf(100, 10);
  const auto waves = makeWaves(cluster, namesOf(cluster), {});
  ASSERT_EQ(waves.size(), 4u);
  EXPECT_THAT(waves[0].nodes, ElementsAre(NodeName("n0000"), NodeName("n0010"), NodeName("n0020")));
  EXPECT_EQ(waves[1].nodes.size(), 7u) << "to 10 %, canaries included";
  EXPECT_EQ(waves[2].nodes.size(), 40u);
  EXPECT_EQ(waves[3].nodes.size(), 50u);
}

TEST(RolloutWaves, everyProfileHasACanaryBeforeARackHasTwo) {
  auto cluster = clusterOf(40, 10);
  cluster.profiles["cpu"] = {.name = "cpu", .image = "noble"};
  cluster.nodes[39].profile = "cpu";
  inventory::RolloutPolicy policy;
  policy.canary.nodes = 2;
  EXPECT_THAT(makeWaves(cluster, namesOf(cluster), policy)[0].nodes,
              ElementsAre(NodeName("n0039"), NodeName("n0000")));
}

TEST(RolloutWaves, wholeRacksAreCanariesWhereThePolicySaysSo) {
  const auto cluster = clusterOf(30, 10);
  inventory::RolloutPolicy policy;
  policy.canary.racks = 1;
  const auto waves = makeWaves(cluster, namesOf(cluster), policy);
  EXPECT_EQ(waves[0].nodes.size(), 10u);
  EXPECT_EQ(waves[0].nodes.back(), NodeName("n0009"));
}

TEST(RolloutWaves, holdEveryNodeOnceWhateverThePolicy) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto cluster =
        clusterOf(1 + static_cast<int>(random() % 60), 1 + static_cast<int>(random() % 9));
    inventory::RolloutPolicy policy;
    policy.canary.nodes = 1 + static_cast<int>(random() % 5);
    if (random() % 3 == 0) policy.canary.racks = 1 + static_cast<int>(random() % 3);
    policy.waves.clear();
    for (int share = 1 + static_cast<int>(random() % 30); share < 100;
         share += 1 + static_cast<int>(random() % 50))
      policy.waves.push_back(share);
    std::vector<NodeName> seen;
    for (const auto& wave : makeWaves(cluster, namesOf(cluster), policy)) {
      EXPECT_FALSE(wave.nodes.empty());
      seen.insert(seen.end(), wave.nodes.begin(), wave.nodes.end());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, namesOf(cluster));
  }
}

}  // namespace
}  // namespace muster::lifecycle
