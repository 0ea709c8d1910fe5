// SPDX-License-Identifier: Apache-2.0
// The cluster in which nodes change one by one.
#include "lifecycle/rollout/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "tests/lifecycle/rollout/rollout_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using testing::ElementsAre;

inventory::Change to575() {
  inventory::Change change;
  change.drivers["nvidia-575"] = {.name = "nvidia-575", .packages = {"nvidia=575"}};
  change.profiles["gpu"] = {.name = "gpu",
                            .image = {},
                            .firmware = {},
                            .drivers = std::vector<std::string>{"nvidia-575"}};
  return change;
}

TEST(EffectiveCluster, oneNodeStepsOverAndBack) {
  EffectiveCluster live(clusterOf(4, 2));
  live.add("r1", to575());
  EXPECT_EQ(live.cluster().digest, "declared") << "nothing has changed yet";
  EXPECT_TRUE(live.cluster().drivers.contains("nvidia-575"));
  live.change("r1", NodeName("n0001"));
  const auto& changed = live.cluster().profileOf(*live.cluster().findNode(NodeName("n0001")));
  EXPECT_THAT(changed.drivers, ElementsAre("nvidia-575"));
  EXPECT_EQ(changed.name, "gpu")
      << "its certificate is worth the same when the inventory itself says so";
  EXPECT_THAT(live.cluster().profileOf(*live.cluster().findNode(NodeName("n0002"))).drivers,
              ElementsAre("nvidia-570"));
  const auto one = live.cluster().digest;
  EXPECT_NE(one, "declared");
  live.change("r1", NodeName("n0002"));
  EXPECT_NE(live.cluster().digest, one);
  live.revert("r1", NodeName("n0002"));
  EXPECT_EQ(live.cluster().digest, one) << "a function of what has changed, not of how";
  live.revert("r1", NodeName("n0001"));
  EXPECT_EQ(live.cluster().digest, "declared");
}

TEST(EffectiveCluster, isGoneWhenTheInventorySaysTheSame) {
  auto cluster = clusterOf(2, 2);
  cluster.drivers["nvidia-575"] = {.name = "nvidia-575", .packages = {"nvidia=575"}};
  cluster.profiles["gpu"].drivers = {"nvidia-575"};
  EffectiveCluster live(cluster);
  live.add("r1", to575());
  live.change("r1", NodeName("n0000"));
  EXPECT_EQ(live.cluster().digest, "declared");
  EXPECT_FALSE(live.affects("r1", NodeName("n0001")));
}

TEST(EffectiveCluster, changesLieOnEachOther) {
  EffectiveCluster live(clusterOf(2, 2));
  live.add("r1", to575());
  inventory::Change image;
  image.images["noble-2"] = {.name = "noble-2"};
  image.profiles["gpu"] = {.name = "gpu", .image = "noble-2", .firmware = {}, .drivers = {}};
  live.add("r2", image);
  live.change("r2", NodeName("n0000"));
  live.change("r1", NodeName("n0000"));
  const auto& both = live.cluster().profileOf(live.cluster().nodes[0]);
  EXPECT_EQ(both.image, "noble-2");
  EXPECT_THAT(both.drivers, ElementsAre("nvidia-575"));
  live.revert("r1", NodeName("n0000"));
  EXPECT_THAT(live.cluster().profileOf(live.cluster().nodes[0]).drivers, ElementsAre("nvidia-570"));
}

}  // namespace
}  // namespace muster::lifecycle
