// SPDX-License-Identifier: Apache-2.0
// What collectives of many say of single nodes and pairs, and what they do not.
#include "validate/isolate/collective_learner.h"

#include "tests/validate/isolate_world.h"

#include <gtest/gtest.h>

namespace muster::validate::isolate {
namespace {

using test::IsolateWorld;

/// A state that has learned one all-to-all of all nodes of a healthy world.
class OneExchange {
 public:
  OneExchange(int leaves, int nodes_per_leaf) : world_(70) {
    world_.leaves = leaves, world_.nodes_per_leaf = nodes_per_leaf, world_.spines = 8;
    state_.emplace(world_.layout(), Options{});
    for (auto& nic : state_->nics) nic.status = PartStatus::Clear;
  }
  Isolation::State& learned() {
    std::vector<int> all;
    for (int node = 0; node < world_.nodes(); ++node) all.push_back(node);
    state_->current = Round{.number = 1,
                            .stage = Stage::Ladder,
                            .what = "all",
                            .groups = {{Collective::AllToAll, all}}};
    CollectiveLearner(*state_).learn(world_.run(*state_->current));
    return *state_;
  }
  IsolateWorld& world() { return world_; }

 private:
  IsolateWorld world_;
  std::optional<Isolation::State> state_;
};

/// A round counts for a node when a fault of it would have been seen: its row has a median from
/// eight others on.
TEST(IsolateCollectives, anAllToAllOfFewIsNoRoundOfItsNodes) {
  OneExchange few(2, 4), many(2, 8);
  EXPECT_EQ(few.learned().nic(0, 0).tests, 7);
  EXPECT_EQ(few.learned().nic(0, 0).rounds, 0);
  EXPECT_EQ(many.learned().nic(0, 0).rounds, 1);
}

/// A leaf that drifts by some per cent makes no suspect of its nodes; one that is bad does, and so
/// does a node that is slow beside its leaf.
TEST(IsolateCollectives, aLeafThatDriftsMakesNoSuspects) {
  const auto suspects = [](OneExchange& one) { return one.learned().suspects(); };
  OneExchange drifting(4, 16);
  drifting.world().slowLeaf(0, 0, 0.96);
  EXPECT_TRUE(suspects(drifting).empty());
  OneExchange bad(4, 16);
  bad.world().slowLeaf(0, 0, 0.8);
  EXPECT_EQ(suspects(bad).size(), 16u);
  OneExchange both(4, 16);
  both.world().slowLeaf(0, 0, 0.97);
  both.world().slowNode(5, 0.88);
  EXPECT_EQ(suspects(both), std::vector{5});
}

TEST(IsolateCollectives, theNewestOfAllSaysWhoWasGoodTogether) {
  OneExchange one(4, 8);
  one.world().slowPair(3, 12, 0, 0.5);
  const auto& state = one.learned();
  const auto was = [&state](int a, int b, double best) {
    return state.wasGoodTogether({.a = a, .b = b, .rail = 0, .share = best, .best = best});
  };
  EXPECT_TRUE(was(3, 13, 0.5));
  EXPECT_TRUE(was(13, 3, 0.5)) << "in either order";
  EXPECT_FALSE(was(3, 12, 0.5)) << "bad then as well";
  EXPECT_FALSE(was(12, 3, 0.5));
  EXPECT_FALSE(was(3, 13, 0.9)) << "so little would not have been seen";
  Isolation::State fresh(one.world().layout(), {});
  EXPECT_FALSE(fresh.wasGoodTogether({.a = 3, .b = 13, .rail = 0, .share = 0.5, .best = 0.5}))
      << "there was none";
}

/// Two that were good together in the all-to-all of all and are bad together since: a pair that
/// does not get on is bad at all times. What it is, more tests with others say.
TEST(Isolate, aPairThatWasGoodTogetherIsNotNamedAsAPair) {
  IsolateWorld world(63);
  world.leaves = 8, world.nodes_per_leaf = 8, world.spines = 8;
  Isolation isolation(world.layout(), {});
  Pair struck{-1, -1};
  int bad = 0;
  while (const auto round = isolation.next()) {
    auto result = world.run(*round);
    for (std::size_t g = 0; g < round->groups.size(); ++g) {
      const auto& members = round->groups[g].members;
      if (round->number < 10 || members.size() != 2) continue;
      const Pair both(std::min(members[0], members[1]), std::max(members[0], members[1]));
      if (struck.first < 0) struck = both;
      if (both == struck) result[g].rail_gbits[0] *= 0.5, ++bad;
    }
    isolation.learn(result);
  }
  ASSERT_GE(bad, 2);
  const auto verdict = isolation.verdict();
  EXPECT_TRUE(verdict.culprits.empty());
  for (const int node : {struck.first, struck.second})
    EXPECT_EQ(std::count(verdict.cleared.begin(), verdict.cleared.end(), node), 0) << node;
  EXPECT_EQ(verdict.cleared.size(), 62u);
}

}  // namespace
}  // namespace muster::validate::isolate
