// SPDX-License-Identifier: Apache-2.0
// What a rollout must not do to a cluster when things go wrong around it, in virtual time.
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/rollout_policy.h"
#include "tests/lifecycle/rollout_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::MemoryStore;
using test::RolloutRack;
using test::withRoomFor;
using testing::ElementsAre;
using testing::HasSubstr;

void withImages(RolloutRack& rack) {
  rack.with_images = true;
  rack.change = test::kToNoble2;
  rack.wipe_reason = "new image";
}

/// The canary fails before its image comes up: months later nobody would remember that its disk may
/// be wiped.
TEST(RolloutGuard, aLeaveToWipeThatWasNotUsedEndsWithTheTurnOfItsNode) {
  RolloutRack rack(6, 3);
  withImages(rack);
  rack.world.behave("gpu0001/pool").blocked = "a job runs until Friday";
  MemoryStore store;
  ASSERT_TRUE(store.grantWipe(NodeName("gpu0006"), "by hand", {}));
  ASSERT_EQ(rack.start(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).of(NodeName("gpu0001")).state, RolloutNodeState::Failed)
      << reasonsOf(store);
  EXPECT_EQ(rack.world.effects("gpu0001/image"), 0);
  EXPECT_THAT(*store.wipeGrants(), ElementsAre(NodeName("gpu0006"))) << "that one is a person's";
  ASSERT_EQ(rack.rollBack(store).error, "");
  EXPECT_THAT(*store.wipeGrants(), ElementsAre(NodeName("gpu0006")));
}

TEST(RolloutGuard, anAbortTakesBackTheLeavesOfNodesThatADeadRunnerHasStarted) {
  int abandoned = 0;
  bool over = false;
  for (int at = 0; !over; ++at) {
    RolloutRack rack(2, 2);
    withImages(rack);
    MemoryStore store;
    over = !rack.start(store, {}, at, true).crashed;
    if (over || !RolloutRecord::newest(store) || !RolloutRack::record(store).rollout().isOpen())
      continue;
    abandoned += !store.wipeGrants()->empty();
    auto record = RolloutRack::record(store);
    ASSERT_TRUE(orderRollout(record, Order::Abort, "ann", true));
    EXPECT_TRUE(store.wipeGrants()->empty()) << "write " << at;
  }
  EXPECT_GT(abandoned, 0);
}

// ---- pools that are away
// -----------------------------------------------------------------------------------------------

/// The most nodes that were out of the pool at once, as the pool itself sees it.
void countMostOut(RolloutRack& rack, int& most) {
  rack.pool.after_act = [&rack, &most] {
    most = std::max(most, static_cast<int>(rack.declared.nodes.size()) - rack.working());
  };
}

/// During an outage everybody counts as out, and who is out makes nothing worse: all of them were
/// let go, and drained together as soon as the pool answered.
TEST(RolloutGuard, aPoolThatComesBackFindsTheCeilingsAsTheyWere) {
  for (const std::size_t done : {3u, 4u, 6u, 9u}) {
    RolloutRack rack(24, 8);
    MemoryStore store;
    int most_out = 0;
    countMostOut(rack, most_out);
    rack.pool.away = [&, since = std::optional<WallTime>()]() mutable {
      if (const auto record = RolloutRecord::newest(store);
          !since && record && record->count(RolloutNodeState::Done) >= done)
        since = rack.clock.now();
      return since && rack.clock.now() < *since + std::chrono::minutes(15);
    };
    ASSERT_EQ(rack.start(store, withRoomFor(2)).error, "");
    EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Done), 24u) << reasonsOf(store);
    EXPECT_EQ(most_out, 2) << "after " << done;
  }
}

TEST(RolloutGuard, aPoolThatComesBackOnTheWayBackFindsTheCeilingsAsTheyWere) {
  RolloutRack rack(24, 8);
  MemoryStore store;
  int most_out = 0;
  ASSERT_EQ(rack.start(store, withRoomFor(2)).error, "");
  countMostOut(rack, most_out);
  rack.pool.away = [&, since = std::optional<WallTime>()]() mutable {
    if (const auto record = RolloutRecord::newest(store);
        !since && record && record->count(RolloutNodeState::Returned) >= 4)
      since = rack.clock.now();
    return since && rack.clock.now() < *since + std::chrono::minutes(15);
  };
  ASSERT_EQ(rack.rollBack(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Returned), 24u) << reasonsOf(store);
  EXPECT_EQ(most_out, 2);
}

/// All were noted as out at the first look, and work when their turn comes.
TEST(RolloutGuard, aNodeThatWasNotedAsOutAndWorksNeedsRoom) {
  RolloutRack rack(12, 12);
  MemoryStore store;
  int most_out = 0;
  countMostOut(rack, most_out);
  rack.pool.away = [&store, looks = 0]() mutable {
    return RolloutRecord::newest(store) && looks++ < 12;
  };
  auto policy = withRoomFor(2);
  policy.canary.nodes = 6;
  ASSERT_EQ(rack.start(store, policy).error, "");
  EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Done), 12u) << reasonsOf(store);
  EXPECT_EQ(most_out, 2);
}

// ---- nodes that have left the inventory
// --------------------------------------------------------------------------------

void takeOutOfTheInventory(RolloutRack& rack, const std::string& name) {
  std::erase_if(rack.declared.nodes, [&name](const auto& node) { return node.name.str() == name; });
}

TEST(RolloutGuard, aNodeThatLeftTheInventoryIsPassedOverOnTheWayForward) {
  for (const auto* gone : {"gpu0001", "gpu0006"}) {  // one that is being changed, one that waits
    RolloutRack rack(6, 6);
    MemoryStore store;
    bool once = false;
    rack.provision.after_act = [&] {
      if (std::exchange(once, true)) return;
      auto record = RolloutRack::record(store);
      ASSERT_TRUE(record.takeOver(RolloutDirection::Forward)) << "by one that dies at once";
    };
    ASSERT_NE(rack.start(store, withRoomFor(3)).error, "");
    takeOutOfTheInventory(rack, gone);
    ASSERT_EQ(rack.resume(store).error, "") << gone;
    const auto record = RolloutRack::record(store);
    EXPECT_EQ(record.rollout().state, RolloutState::Done) << reasonsOf(store);
    EXPECT_EQ(record.of(NodeName(gone)).state, RolloutNodeState::Skipped);
    EXPECT_EQ(record.of(NodeName(gone)).why, "it is no longer in the inventory");
    EXPECT_EQ(record.count(RolloutNodeState::Done), 5u);
  }
}

TEST(RolloutGuard, aNodeThatLeftTheInventoryIsPassedOverOnTheWayBack) {
  RolloutRack rack(4, 4);
  MemoryStore store;
  ASSERT_EQ(rack.start(store, withRoomFor(3)).error, "");
  ASSERT_EQ(RolloutRack::record(store).count(RolloutNodeState::Done), 4u);
  takeOutOfTheInventory(rack, "gpu0002");
  ASSERT_EQ(rack.rollBack(store).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::RolledBack) << reasonsOf(store);
  EXPECT_EQ(record.count(RolloutNodeState::Returned), 4u);
  EXPECT_EQ(record.of(NodeName("gpu0002")).why, "it is no longer in the inventory");
  EXPECT_EQ(rack.value("gpu0001/driver.nvidia-570"), "570.1");
}

// ---- what a policy of rolling back is for
// ------------------------------------------------------------------------------

inventory::RolloutPolicy rollingBack() {
  auto policy = withRoomFor(1);
  policy.on_failure = inventory::OnFailure::RollBack;
  return policy;
}

void expectHalted(MemoryStore& store, const char* because) {
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Halted) << reasonsOf(store);
  EXPECT_EQ(record.rollout().direction, RolloutDirection::Forward);
  EXPECT_EQ(record.count(RolloutNodeState::Returned), 0u);
  EXPECT_THAT(reasonsOf(store), HasSubstr(because));
  ASSERT_FALSE(record.rollout().gates.empty());
  EXPECT_FALSE(record.rollout().gates.back().blames_change);
}

TEST(RolloutGuard, whatDoesNotSpeakAgainstTheChangeRollsNothingBack) {
  {
    RolloutRack rack(8, 4);
    MemoryStore store;
    rack.pool.away = [&, since = std::optional<WallTime>()]() mutable {
      if (const auto record = RolloutRecord::newest(store);
          !since && record && record->count(RolloutNodeState::Done) >= 4)
        since = rack.clock.now();
      return since && rack.clock.now() < *since + std::chrono::hours(5);
    };
    ASSERT_EQ(rack.start(store, rollingBack()).error, "");
    expectHalted(store, "has not answered for 30 minutes");
    EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Done), 4u);
  }
  {
    RolloutRack rack(8, 4);
    MemoryStore store;
    rack.world.set("gpu0008/pool", "drained");  // all that its rack may miss
    for (int i = 1; i <= 7; ++i) rack.only.push_back(NodeName(fmt::format("gpu{:04}", i)));
    auto policy = rollingBack();
    policy.max_unavailable.pool = {2, std::nullopt};
    policy.max_unavailable.rack = {1, std::nullopt};
    ASSERT_EQ(rack.start(store, policy).error, "");
    expectHalted(store, "no node could be drained for 30 minutes");
  }
  {
    RolloutRack rack(6, 3);
    MemoryStore store;
    rack.provision.after_act = [&] {  // somebody declares more for all that come later
      const auto waves = RolloutRack::record(store).rollout().waves;
      for (const auto& node : waves.back().nodes) rack.extra.insert(node.str());
    };
    ASSERT_EQ(rack.start(store, rollingBack()).error, "");
    expectHalted(store, "no node of the wave was changed");
  }
  RolloutRack rack(6, 3);
  MemoryStore store;
  auto policy = rollingBack();
  policy.canary.nodes = 1;
  ASSERT_EQ(rack.start(store, policy).error, "");
  expectHalted(store, "policy: halt while it is inconclusive");
}

/// A person has accepted the failures; then the pool goes away.
TEST(RolloutGuard, acceptedFailuresRollNothingBackLater) {
  RolloutRack rack(8, 4);
  rack.world.behave("gpu0001/gate.burn-in").becomes = "fail:nvidia-575";
  MemoryStore store;
  auto policy = withRoomFor(2);
  policy.canary.nodes = 4;
  ASSERT_EQ(rack.start(store, policy).error, "");
  auto record = RolloutRack::record(store);
  ASSERT_EQ(record.rollout().state, RolloutState::Halted);
  auto next = record.rollout();
  next.policy.on_failure = inventory::OnFailure::RollBack;
  ASSERT_TRUE(record.save(next));
  rack.pool.away = [&rack, since = rack.clock.now()] {
    return rack.clock.now() < since + std::chrono::hours(2);
  };
  ASSERT_EQ(rack.resume(store, test::CrashStore::kNever, false, "ann: known cable").error, "");
  const auto after = RolloutRack::record(store).rollout();
  EXPECT_EQ(after.state, RolloutState::Halted) << reasonsOf(store);
  EXPECT_EQ(after.direction, RolloutDirection::Forward);
}

// ---- what is left of a declaration
// -------------------------------------------------------------------------------------

TEST(RolloutGuard, aRollbackTakesTheFindingsOfWhatItRemovesWithIt) {
  RolloutRack rack(4, 2);
  MemoryStore store;
  rack.world.behave("gpu0001/driver.nvidia-575").blocked = "the package does not build";
  auto policy = withRoomFor(2);
  policy.canary.nodes = 1;
  ASSERT_EQ(rack.start(store, policy).error, "");
  ASSERT_EQ(RolloutRack::record(store).of(NodeName("gpu0001")).state, RolloutNodeState::Failed)
      << reasonsOf(store);
  const Subject node(NodeName("gpu0001"));
  const FacetRef other{node, FacetName("health.fan")};
  ASSERT_TRUE(store.addFinding({{node, FacetName("driver.nvidia-575")},
                                Severity::Error,
                                "it does not build",
                                "",
                                "",
                                rack.clock.now()}));
  ASSERT_TRUE(
      store.addFinding({other, Severity::Error, "a fan stands still", "", "", rack.clock.now()}));
  ASSERT_EQ(rack.rollBack(store).error, "");
  const auto left = *store.findings(&node);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].facet, other) << "nobody but its own watch says that this is over";
}

// ---- nodes that are tried again
// ----------------------------------------------------------------------------------------

TEST(RolloutGuard, aNodeThatIsTriedAgainIsHeldToItsFrozenPlan) {
  RolloutRack rack(4, 2);
  MemoryStore store;
  rack.world.behave("gpu0001/gate.burn-in").becomes = "fail:nvidia-575";
  ASSERT_EQ(rack.start(store, withRoomFor(3)).error, "");
  ASSERT_EQ(RolloutRack::record(store).of(NodeName("gpu0001")).state, RolloutNodeState::Failed);
  rack.world.behave("gpu0001/gate.burn-in").becomes = "";
  rack.extra.insert("gpu0001");  // somebody has declared firmware for it meanwhile: a reset, where
                                 // a drain was shown
  ASSERT_EQ(rack.resume(store).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.of(NodeName("gpu0001")).state, RolloutNodeState::Failed);
  EXPECT_EQ(record.of(NodeName("gpu0001")).why,
            "changed since the plan was frozen: gpu0001/firmware.BMC is needed now and was not "
            "when the plan was frozen");
  EXPECT_EQ(rack.world.effects("gpu0001/firmware.BMC"), 0);
}

/// What nobody could foresee but disturbs no more than what was shown is within: a node that was
/// begun is brought to its end.
TEST(RolloutGuard, aNodeThatIsTriedAgainMayNeedMoreOfTheSame) {
  RolloutRack rack(4, 2);
  MemoryStore store;
  rack.world.behave("gpu0001/gate.burn-in").becomes = "fail:nvidia-575";
  ASSERT_EQ(rack.start(store, withRoomFor(3)).error, "");
  rack.world.behave("gpu0001/gate.burn-in").becomes = "";
  rack.more_drains.insert("gpu0001");
  ASSERT_EQ(rack.resume(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Done) << reasonsOf(store);
  EXPECT_EQ(rack.world.effects("gpu0001/driver.fabric"), 1);
}

}  // namespace
}  // namespace muster::lifecycle
