// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/window.h"
#include "inventory/model/cluster.h"
#include "inventory/model/rollout_policy.h"
#include "tests/lifecycle/rollout/rollout_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using testing::HasSubstr;

TEST(RolloutWindow, countsEveryGroupOfANode) {
  const auto cluster = clusterOf(32, 4);
  const LeafSwitchesOf leaves = [](const inventory::Cluster& all) {
    std::map<std::string, std::set<std::string>> out;
    for (std::size_t i = 0; i < all.nodes.size(); ++i)
      out[all.nodes[i].name.str()] = {i % 2 ? "leaf-b" : "leaf-a"};
    return out;
  };
  inventory::Unavailability most;
  most.pool = {5, std::nullopt};
  most.rack = {2, std::nullopt};
  most.su = {std::nullopt, 40};  // of 8 nodes: 3
  most.leaf = {4, std::nullopt};
  Window window(domainsOf(cluster, leaves), most);
  const auto go = [&](const char* name) {
    const auto why = window.whyNot(NodeName(name));
    if (why.empty()) window.out(NodeName(name));
    return why;
  };
  EXPECT_EQ(go("n0000"), "");
  EXPECT_EQ(go("n0002"), "");
  EXPECT_EQ(go("n0001"), "2 of 4 nodes of rack r00 are out of work, and 2 may be: n[0000,0002]");
  EXPECT_EQ(go("n0004"), "");
  EXPECT_THAT(go("n0005"), HasSubstr("3 of 8 nodes of su ib-1 are out of work"));
  EXPECT_EQ(go("n0008"), "");
  EXPECT_THAT(go("n0016"), HasSubstr("leaf leaf-a"));
  EXPECT_EQ(go("n0017"), "");
  EXPECT_THAT(go("n0031"), HasSubstr("5 of 32 nodes of pool batch are out of work, and 5 may be"));
  EXPECT_EQ(window.whyNot(NodeName("n0000")), "") << "it is out already";
  window.in(NodeName("n0000"));
  EXPECT_EQ(go("n0031"), "");
}

TEST(RolloutWindow, aSmallGroupStillLetsOneNodeThrough) {
  const auto cluster = clusterOf(4, 4);
  Window window(domainsOf(cluster, nullptr), {});  // 10 % of four
  EXPECT_EQ(window.whyNot(NodeName("n0000")), "");
  window.out(NodeName("n0000"));
  EXPECT_NE(window.whyNot(NodeName("n0001")), "");
}

}  // namespace
}  // namespace muster::lifecycle
