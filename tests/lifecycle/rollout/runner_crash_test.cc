// SPDX-License-Identifier: Apache-2.0
// kill -9 at every write of a rollout, and of a rollback: what comes after goes on, and nothing is
// done twice.
#include "tests/lifecycle/rollout_rack.h"
#include "tests/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::CrashStore;
using test::MemoryStore;
using test::RolloutRack;

constexpr int kNodes = 4;
constexpr int kMaxRunnerLives = 50;

/// What a person does after a crash: goes on, or starts when nothing was begun.
RolloutRack::Life goOn(RolloutRack& rack, MemoryStore& store) {
  const bool begun = RolloutRecord::newest(store).has_value();
  return begun ? rack.resume(store) : rack.start(store);
}

void expectDoneOnce(RolloutRack& rack, MemoryStore& store) {
  const auto record = RolloutRack::record(store);
  ASSERT_EQ(record.rollout().state, RolloutState::Done)
      << fmt::format("{}", fmt::join(record.rollout().reasons, "\n"));
  EXPECT_EQ(record.count(RolloutNodeState::Done), static_cast<std::size_t>(kNodes));
  EXPECT_EQ(rack.working(), kNodes);
  for (const auto& [facet, count] : rack.world.effect_counts)
    EXPECT_EQ(count, facet.facet.str() == "pool" ? 2 : 1) << facet.str();
  EXPECT_TRUE(store.openIntents()->empty());
}

TEST(RolloutCrash, atEveryWriteEachNodeIsChangedOnce) {
  int writes = 0;
  {
    RolloutRack rack(kNodes, 2);
    MemoryStore store;
    const auto life = rack.start(store);
    ASSERT_EQ(life.error, "");
    expectDoneOnce(rack, store);
    writes = life.writes;
  }
  ASSERT_GT(writes, 100);
  const int apart = test::pointsApart(1);
  for (int at = 0; at < writes; at += apart)
    for (const bool lost : {true, false}) {
      if (!test::suffers(at, apart, lost ? 0 : 1, 2)) continue;
      SCOPED_TRACE(fmt::format("write {} {}", at, lost ? "lost" : "kept"));
      RolloutRack rack(kNodes, 2);
      MemoryStore store;
      ASSERT_TRUE(rack.start(store, {}, at, lost).crashed);
      const bool over =
          RolloutRecord::newest(store) && !RolloutRack::record(store).rollout().isOpen();
      if (!over) {
        const auto life = goOn(rack, store);
        ASSERT_EQ(life.error, "");
      }
      expectDoneOnce(rack, store);
      if (HasFailure()) return;
    }
}

TEST(RolloutCrash, atEveryWriteNoDiskIsWrittenTwiceAndNoLeaveIsLeftOver) {
  const auto prepared = [](RolloutRack& rack) {
    rack.with_images = true;
    rack.change = test::kToNoble2;
    rack.wipe_reason = "new image";
  };
  int writes = 0;
  {
    RolloutRack rack(2, 2);
    prepared(rack);
    MemoryStore store;
    const auto life = rack.start(store);
    ASSERT_EQ(life.error, "");
    writes = life.writes;
  }
  const int apart = test::pointsApart(1);
  for (int at = 0; at < writes; at += apart)
    for (const bool lost : {true, false}) {
      if (!test::suffers(at, apart, lost ? 0 : 1, 2)) continue;
      SCOPED_TRACE(fmt::format("write {} {}", at, lost ? "lost" : "kept"));
      RolloutRack rack(2, 2);
      prepared(rack);
      MemoryStore store;
      ASSERT_TRUE(rack.start(store, {}, at, lost).crashed);
      const auto begun = RolloutRecord::newest(store);
      if (!begun || begun->rollout().isOpen()) {
        const auto life = goOn(rack, store);
        ASSERT_EQ(life.error, "");
      }
      EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Done), 2u);
      for (const auto* node : {"gpu0001", "gpu0002"})
        EXPECT_EQ(rack.world.effects(std::string(node) + "/image"), 1);
      EXPECT_TRUE(store.wipeGrants()->empty());
      EXPECT_EQ(rack.working(), 2);
      if (HasFailure()) return;
    }
}

TEST(RolloutCrash, manyDeathsInARowStillEndIt) {
  RolloutRack rack(kNodes, 2);
  MemoryStore store;
  int lives = 1;
  auto life = rack.start(store, {}, 60, true);
  while (life.crashed) {
    ASSERT_LT(++lives, kMaxRunnerLives) << "no progress";
    life = rack.resume(store, 23 + lives, lives % 2 == 0);
  }
  ASSERT_EQ(life.error, "");
  EXPECT_GT(lives, 4);
  expectDoneOnce(rack, store);
}

TEST(RolloutCrash, atEveryWriteOfARollbackEachNodeIsRestoredOnce) {
  int writes = 0;
  const auto changed = [](RolloutRack& rack, MemoryStore& store) {
    ASSERT_EQ(rack.start(store).error, "");
    rack.world.effect_counts.clear();
  };
  const auto check = [](RolloutRack& rack, MemoryStore& store) {
    const auto record = RolloutRack::record(store);
    ASSERT_EQ(record.rollout().state, RolloutState::RolledBack)
        << fmt::format("{}", fmt::join(record.rollout().reasons, "\n"));
    EXPECT_EQ(record.count(RolloutNodeState::Returned), static_cast<std::size_t>(kNodes));
    for (const auto& node : rack.declared.nodes) {
      EXPECT_EQ(rack.value(node.name.str() + "/driver.nvidia-570"), "570.1");
      EXPECT_EQ(rack.value(node.name.str() + "/certificate"), "valid:nvidia-570");
    }
    EXPECT_EQ(rack.working(), kNodes);
    for (const auto& [facet, count] : rack.world.effect_counts)
      EXPECT_EQ(count, facet.facet.str() == "pool" ? 2 : 1) << facet.str();
    EXPECT_TRUE(store.openIntents()->empty());
  };
  {
    RolloutRack rack(kNodes, 2);
    MemoryStore store;
    changed(rack, store);
    const auto life = rack.rollBack(store);
    ASSERT_EQ(life.error, "");
    check(rack, store);
    writes = life.writes;
  }
  const int apart = test::pointsApart(1);
  for (int at = 0; at < writes; at += apart)
    for (const bool lost : {true, false}) {
      if (!test::suffers(at, apart, lost ? 0 : 1, 2)) continue;
      SCOPED_TRACE(fmt::format("write {} {}", at, lost ? "lost" : "kept"));
      RolloutRack rack(kNodes, 2);
      MemoryStore store;
      changed(rack, store);
      ASSERT_TRUE(rack.rollBack(store, at, lost).crashed);
      if (RolloutRack::record(store).rollout().state != RolloutState::RolledBack) {
        const auto again = rack.rollBack(store);
        ASSERT_EQ(again.error, "");
      }
      check(rack, store);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace muster::lifecycle
