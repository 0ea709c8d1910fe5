// SPDX-License-Identifier: Apache-2.0
// Rollouts among people: nodes that somebody has drained, a time to watch between waves, a
// rehearsal, and where a node stands.
#include "lifecycle/rollout/status.h"
#include "inventory/model/rollout_policy.h"
#include "tests/lifecycle/rollout_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::MemoryStore;
using test::RolloutRack;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::minutes kSoak{90};

/// A person's drain, as the pool phase tells it.
std::string byPerson(const Fact& fact, const std::set<std::string>& drained) {
  if (fact.facet.str() != kPoolFacet || !drained.contains(fact.subject.str())) return "";
  return R"({"by_person": true, "reason": "bob: fan swap"})";
}

/// A node that somebody keeps out takes one of the places.
inventory::RolloutPolicy withRoom() {
  inventory::RolloutPolicy policy;
  policy.max_unavailable.pool = {3, std::nullopt};
  return policy;
}

inventory::RolloutPolicy soaking() {
  inventory::RolloutPolicy policy;
  policy.soak_minutes = static_cast<int>(kSoak.count());
  return policy;
}

TEST(RolloutAndPeople, aNodeThatAPersonHasDrainedIsSkippedWithTheirReason) {
  RolloutRack rack(8, 4);
  std::set<std::string> drained{"gpu0002"};
  rack.pool.evidence = [&](const Fact& fact) { return byPerson(fact, drained); };
  rack.world.set("gpu0002/pool", "drained");
  MemoryStore store;
  ASSERT_EQ(rack.start(store, withRoom()).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Done);
  EXPECT_EQ(record.of(NodeName("gpu0002")).state, RolloutNodeState::Skipped);
  EXPECT_THAT(record.of(NodeName("gpu0002")).why,
              HasSubstr("a person has drained it ('bob: fan swap')"));
  EXPECT_EQ(rack.world.effects("gpu0002/driver.nvidia-575"), 0);
  EXPECT_EQ(record.count(RolloutNodeState::Done), 7u);
  EXPECT_EQ(record.count(RolloutNodeState::Failed), 0u);
}

TEST(RolloutAndPeople, aNodeThatIsDrainedWhileItWaitsForItsTurnIsSkippedToo) {
  RolloutRack rack(8, 4);
  std::set<std::string> drained;
  rack.pool.evidence = [&](const Fact& fact) { return byPerson(fact, drained); };
  rack.validate.side_effects =
      [&](const Action&) {  // as soon as the first node is through its gate
        drained = {"gpu0008"};
        rack.world.set("gpu0008/pool", "drained");
      };
  MemoryStore store;
  ASSERT_EQ(rack.start(store, withRoom()).error, "");
  EXPECT_EQ(RolloutRack::record(store).of(NodeName("gpu0008")).state, RolloutNodeState::Skipped);
  EXPECT_EQ(rack.world.effects("gpu0008/driver.nvidia-575"), 0);
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Done);
}

TEST(RolloutAndPeople, aDrainInTheMiddleOfTheWorkIsNoFailureOfTheChange) {
  RolloutRack rack(8, 4);
  std::set<std::string> drained;
  rack.pool.evidence = [&](const Fact& fact) { return byPerson(fact, drained); };
  rack.validate.side_effects = [&](const Action& action) {
    if (action.facet.subject.str() != "gpu0001") return;
    drained = {"gpu0001"};
    rack.world.behave("gpu0001/pool").blocked = "gpu0001 was drained by a person: 'bob: fan swap'";
  };
  MemoryStore store;
  ASSERT_EQ(rack.start(store, withRoom()).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.of(NodeName("gpu0001")).state, RolloutNodeState::Done);
  EXPECT_THAT(record.of(NodeName("gpu0001")).why,
              HasSubstr("changed and certified, but not in its pool: a person"));
  EXPECT_EQ(record.rollout().state, RolloutState::Done);
}

TEST(RolloutSoak, eachWaveButTheLastIsWatchedForAsLongAsDeclared) {
  RolloutRack rack(20, 5);
  MemoryStore store;
  const auto begin = rack.clock.now();
  ASSERT_EQ(rack.start(store, soaking()).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Done);
  const auto waves = static_cast<int>(record.rollout().waves.size());
  ASSERT_GT(waves, 2);
  EXPECT_GE(rack.clock.now() - begin, kSoak * (waves - 1));
  EXPECT_LT(rack.clock.now() - begin, kSoak * waves);
  EXPECT_EQ(record.count(RolloutNodeState::Done), 20u);
}

TEST(RolloutSoak, theTimerIsInTheBookAndNotInTheRunner) {
  RolloutRack whole(20, 5);
  MemoryStore other;
  const auto begin = whole.clock.now();
  const auto writes = whole.start(other, soaking()).writes;
  const auto took = whole.clock.now() - begin;
  int watched = 0;
  for (int at = 20; at < writes; at += 9) {
    RolloutRack rack(20, 5);
    MemoryStore store;
    ASSERT_TRUE(rack.start(store, soaking(), at).crashed);
    const auto record = RolloutRecord::newest(store);
    if (!record || !record->rollout().soak_until) continue;
    ++watched;
    ASSERT_EQ(rack.resume(store).error, "");
    EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Done);
    EXPECT_LE(rack.clock.now() - begin, took + std::chrono::minutes(10))
        << "write " << at << ": a restart does not begin to count anew";
  }
  EXPECT_GT(watched, 0) << "no death fell into a soak";
}

TEST(RolloutSoak, nodesThatFallOutOfTheirPoolsWhileTheyAreWatchedHaltIt) {
  RolloutRack rack(20, 5);
  MemoryStore store;
  rack.pool.evidence =
      [&](const Fact& fact) {  // while the canaries are looked at again, the last of them is gone
        const auto known = RolloutRecord::newest(store);
        if (known && known->rollout().soak_until && fact.subject.str() == "gpu0001")
          rack.world.set("gpu0011/pool", "out");
        return std::string();
      };
  ASSERT_EQ(rack.start(store, soaking()).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Halted);
  ASSERT_FALSE(record.rollout().reasons.empty());
  EXPECT_THAT(record.rollout().reasons.front(),
              HasSubstr("1 of 3 changed nodes left their pools within 90 minutes; "
                        "gpu0011 is out now"));
  EXPECT_FALSE(record.rollout().soak_until);
}

TEST(RolloutSoak, aPauseIsObeyedWhileAWaveIsWatched) {
  RolloutRack rack(20, 5);
  MemoryStore store;
  bool told = false;
  rack.validate.side_effects = [&](const Action&) {  // in the middle of the canaries: it is obeyed
                                                     // before or while they are watched
    auto known = RolloutRecord::newest(store);
    if (told || !known || known->count(RolloutNodeState::Done) < 2) return;
    told = true;
    ASSERT_TRUE(known->give({Order::Pause, "ann"}));
  };
  ASSERT_EQ(rack.start(store, soaking()).error, "");
  EXPECT_TRUE(told);
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Paused);
  ASSERT_EQ(rack.resume(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Done);
}

TEST(RolloutDraft, writesNothingUntilItIsBegun) {
  MemoryStore store;
  Rollout rollout;
  rollout.id = "r9";
  rollout.waves = {{"canary", {NodeName("n1")}}};
  auto draft = RolloutRecord::draft(store, rollout, {}, {{NodeName("n1"), {}}});
  EXPECT_EQ(draft.count(RolloutNodeState::Waiting), 1u);
  EXPECT_EQ(RolloutRecord::newest(store).error().code(), ErrorCode::NotFound);
  EXPECT_TRUE(RolloutRecord::list(store)->empty());
  ASSERT_TRUE(draft.begin());
  EXPECT_EQ(RolloutRecord::newest(store)->rollout().id, "r9");
}

class RolloutStatus : public testing::Test {
 protected:
  RolloutStatus() {
    rollout_.id = "r9";
    rollout_.waves = {{"canary", {NodeName("n1")}}, {"to 100 %", {NodeName("n2"), NodeName("n3")}}};
    progress_[NodeName("n1")].state = RolloutNodeState::Done;
    progress_[NodeName("n2")];
    progress_[NodeName("n3")] = {RolloutNodeState::Skipped, "a person has it", {}, {}};
  }
  std::string of(const char* node) {
    return rolloutStatusOf(RolloutRecord::draft(store_, rollout_, {}, progress_), NodeName(node),
                           now_);
  }

  MemoryStore store_;
  Rollout rollout_;
  std::map<NodeName, NodeProgress> progress_;
  WallTime now_ = WallTime{} + std::chrono::hours(24);
};

TEST_F(RolloutStatus, saysWhatANodeWaitsFor) {
  EXPECT_THAT(of("n2"), HasSubstr("rollout r9 (running), wave 'to 100 %', 2 of 2: it waits for "
                                  "wave 'canary' to pass its gate"));
  EXPECT_THAT(of("n3"), HasSubstr("skipped: a person has it"));
  EXPECT_EQ(of("n4"), "") << "it is in none";
  rollout_.soak_until = now_ + kSoak;
  EXPECT_THAT(of("n2"), HasSubstr("it waits until 1970-01-02T01:30:00"));
  rollout_.soak_until.reset();
  rollout_.wave = 1;
  EXPECT_THAT(of("n2"), HasSubstr("it starts when"));
  rollout_.state = RolloutState::Halted;
  rollout_.reasons = {"1 of 1 nodes failed"};
  EXPECT_THAT(of("n2"), HasSubstr("halted: 1 of 1 nodes failed"));
  rollout_.state = RolloutState::Done;
  EXPECT_EQ(of("n2"), "") << "it is over";
}

TEST_F(RolloutStatus, readsTheNewestRolloutOfAStore) {
  EXPECT_EQ(*rolloutStatusOf(store_, NodeName("n2"), now_), "") << "there never was one";
  ASSERT_TRUE(RolloutRecord::draft(store_, rollout_, {}, progress_).begin());
  EXPECT_THAT(*rolloutStatusOf(store_, NodeName("n2"), now_), StartsWith("rollout r9 (running)"));
}

}  // namespace
}  // namespace muster::lifecycle
