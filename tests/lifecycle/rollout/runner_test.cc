// SPDX-License-Identifier: Apache-2.0
// The course of a rollout in virtual time: what is changed, what stops it, what is undone.
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
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

TEST(Rollout, changesEveryNodeOnceAndBringsItBack) {
  RolloutRack rack(10, 5);
  MemoryStore store;
  ASSERT_EQ(rack.start(store).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Done) << reasonsOf(store);
  EXPECT_EQ(record.count(RolloutNodeState::Done), 10u);
  for (const auto& node : rack.declared.nodes) {
    const auto n = node.name.str();
    EXPECT_EQ(rack.value(n + "/driver.nvidia-575"), "575.1");
    EXPECT_EQ(rack.value(n + "/certificate"), "valid:nvidia-575");
    EXPECT_EQ(rack.value(n + "/pool"), "in");
    EXPECT_EQ(rack.world.effects(n + "/driver.nvidia-575"), 1);
    EXPECT_EQ(rack.world.effects(n + "/pool"), 2) << "drained and joined";
    EXPECT_FALSE(store.facts()->find(Subject(node.name), FacetName("driver.nvidia-570")))
        << "nobody looks at it any more";
  }
  ASSERT_EQ(record.rollout().waves.size(), 3u);
  EXPECT_EQ(record.rollout().gates.size(), 3u);
  EXPECT_THAT(record.rollout().gates[0].comparisons.at(0).text(),
              HasSubstr("with 95 % confidence the loss is at most"));
}

TEST(Rollout, nodesWithNothingToDoAreNotTouched) {
  RolloutRack rack(6, 3);
  rack.declared.profiles["login"] = {.name = "login", .image = "noble", .drivers = {}, .pool = ""};
  rack.declared.nodes[0].profile = "login";              // the change does not speak of it
  rack.world.set("gpu0002/driver.nvidia-575", "575.1");  // has it all already
  rack.world.set("gpu0002/driver.nvidia-570", "575.1");
  rack.world.set("gpu0002/gate.burn-in", "pass:nvidia-575");
  rack.world.set("gpu0002/certificate", "valid:nvidia-575");
  MemoryStore store;
  for (const auto& [facet, value] :
       std::map<std::string, std::string>{{"gpu0002/driver.nvidia-575", "575.1"}})
    ASSERT_TRUE(store.putFacts({test::factOf(facet, value)}));
  ASSERT_EQ(rack.start(store).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Done);
  EXPECT_FALSE(record.progress().contains(NodeName("gpu0001")));
  EXPECT_EQ(record.of(NodeName("gpu0002")).state, RolloutNodeState::Untouched);
  for (const auto& [facet, count] : rack.world.effect_counts)
    EXPECT_THAT(facet.subject.str(),
                testing::AllOf(testing::Ne("gpu0001"), testing::Ne("gpu0002")));
  EXPECT_EQ(record.count(RolloutNodeState::Done), 4u);
}

TEST(Rollout, aFailedCanaryHaltsItAndNobodyElseIsTouched) {
  RolloutRack rack(20, 5);
  rack.world.behave("gpu0001/gate.burn-in").becomes = "fail:nvidia-575";
  MemoryStore store;
  ASSERT_EQ(rack.start(store).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Halted);
  EXPECT_THAT(reasonsOf(store),
              HasSubstr("1 of 2 nodes failed, and 5 % may; gpu0001: gpu0001/gate.burn-in: "));
  EXPECT_EQ(record.count(RolloutNodeState::Waiting), 18u)
      << "not even the third canary, which waited for room";
  EXPECT_EQ(rack.working(), 19) << "the failed canary stays out of its pool";
  EXPECT_EQ(rack.world.effects("gpu0002/pool"), 0);
}

TEST(Rollout, goesOnAfterTheCauseIsGoneAndTriesTheFailedNodeAgain) {
  RolloutRack rack(8, 4);
  rack.world.behave("gpu0001/gate.burn-in").becomes = "fail:nvidia-575";
  MemoryStore store;
  ASSERT_EQ(rack.start(store).error, "");
  rack.world.behave("gpu0001/gate.burn-in").becomes = "";
  ASSERT_EQ(rack.resume(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Done) << reasonsOf(store);
  EXPECT_EQ(rack.working(), 8);
  EXPECT_EQ(rack.world.effects("gpu0001/driver.nvidia-575"), 1) << "only what failed is done again";
}

TEST(Rollout, anAcceptedGateIsWrittenDownWithWhoAcceptedIt) {
  RolloutRack rack(8, 4);
  rack.world.behave("gpu0001/gate.burn-in").becomes = "fail:nvidia-575";
  MemoryStore store;
  ASSERT_EQ(rack.start(store, withRoomFor(3)).error, "");
  ASSERT_EQ(rack.resume(store, test::CrashStore::kNever, false, "ann: known cable").error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Done);
  EXPECT_EQ(record.rollout().gates.at(0).accepted_by, "ann: known cable");
  EXPECT_EQ(record.of(NodeName("gpu0001")).state, RolloutNodeState::Failed);
  EXPECT_EQ(rack.working(), 7);
}

TEST(Rollout, whatFailsAfterAnAcceptedGateStopsItAgain) {
  RolloutRack rack(20, 5);
  rack.world.behave("gpu0001/gate.burn-in").becomes = "fail:nvidia-575";
  auto policy = withRoomFor(4);
  policy.canary.nodes = 15;
  MemoryStore store;
  ASSERT_EQ(rack.start(store, policy).error, "");
  const auto halted = RolloutRack::record(store);
  ASSERT_EQ(halted.count(RolloutNodeState::Failed), 1u);
  const auto& wave = halted.rollout().waves.at(0).nodes;
  ASSERT_EQ(wave.size(), 15u);
  const auto next = std::find_if(wave.begin(), wave.end(), [&](const auto& node) {
    return halted.of(node).state == RolloutNodeState::Waiting;
  });
  ASSERT_NE(next, wave.end());
  rack.world.behave(next->str() + "/gate.burn-in").becomes = "fail:nvidia-575";
  ASSERT_EQ(rack.resume(store, test::CrashStore::kNever, false, "ann: known cable").error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Halted);
  EXPECT_EQ(record.count(RolloutNodeState::Failed), 2u);
  EXPECT_GT(record.count(RolloutNodeState::Waiting), 5u) << "not even all of the wave";
  EXPECT_EQ(record.rollout().gates.at(0).accepted_by, "") << "nobody has accepted the second one";
  EXPECT_EQ(record.rollout().accepted_by, "");
}

TEST(Rollout, aGateThatNobodyHasSeenIsNotAccepted) {
  RolloutRack rack(8, 4);
  MemoryStore store;
  bool told = false;
  rack.provision.after_act = [&] {
    if (std::exchange(told, true)) return;
    auto record = RolloutRack::record(store);
    ASSERT_TRUE(orderRollout(record, Order::Pause, "ann", false));
  };
  ASSERT_EQ(rack.start(store).error, "");
  EXPECT_THAT(rack.resume(store, test::CrashStore::kNever, false, "ann: whatever").error,
              HasSubstr("rollout r1 is paused: it has no failed gate that could be accepted; "
                        "resume it without --accept"));
  EXPECT_EQ(RolloutRack::record(store).rollout().accepted_by, "");
}

TEST(Rollout, slowerCanariesHaltItThoughEveryGatePassed) {
  RolloutRack rack(20, 5);
  rack.speed_575 = {{"gpu0001", 90}, {"gpu0006", 91}, {"gpu0011", 89.5}};
  MemoryStore store;
  ASSERT_EQ(rack.start(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Halted);
  EXPECT_THAT(reasonsOf(store), HasSubstr("gemm_gflops: loss of 10.1 % on average over 3 nodes; "
                                          "with 95 % confidence the loss is at least"));
  EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Waiting), 17u);
}

TEST(Rollout, tooFewCanariesToTellHaltItOrNotAsThePolicySays) {
  inventory::RolloutPolicy policy;
  policy.canary.nodes = 1;
  {
    RolloutRack rack(6, 3);
    MemoryStore store;
    ASSERT_EQ(rack.start(store, policy).error, "");
    EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Halted);
    EXPECT_THAT(reasonsOf(store), HasSubstr("one node is too few to tell whether that is more than "
                                            "3 %; policy: halt while it is inconclusive"));
  }
  policy.regression.on_inconclusive = inventory::OnInconclusive::Continue;
  RolloutRack rack(6, 3);
  MemoryStore store;
  ASSERT_EQ(rack.start(store, policy).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Done);
  EXPECT_THAT(record.rollout().gates.at(0).notes,
              ElementsAre(HasSubstr("policy: go on while it is inconclusive")));
}

TEST(Rollout, aFailedGateRollsBackWhereThePolicySaysSo) {
  RolloutRack rack(12, 4);
  rack.speed_575 = {{"gpu0001", 80}, {"gpu0005", 81}, {"gpu0009", 80.5}};
  inventory::RolloutPolicy policy;
  policy.on_failure = inventory::OnFailure::RollBack;
  MemoryStore store;
  ASSERT_EQ(rack.start(store, policy).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::RolledBack);
  EXPECT_EQ(record.count(RolloutNodeState::Returned), 3u);
  EXPECT_THAT(reasonsOf(store), HasSubstr("gemm_gflops: loss of"));
  for (const auto* n : {"gpu0001", "gpu0005", "gpu0009"}) {
    EXPECT_EQ(rack.value(std::string(n) + "/driver.nvidia-570"), "570.1");
    EXPECT_EQ(rack.value(std::string(n) + "/certificate"), "valid:nvidia-570");
  }
  EXPECT_EQ(rack.working(), 12);
  EffectiveCluster live(rack.declared);
  ASSERT_TRUE(applyOverlays(live, store));
  EXPECT_EQ(live.cluster().digest, rack.declared.digest) << "nothing of it lies over the inventory";
}

TEST(Rollout, aDoneOneIsRolledBackAndSaysWhatDoesNotComeBack) {
  RolloutRack rack(4, 2);
  MemoryStore store;
  ASSERT_EQ(rack.start(store, withRoomFor(2)).error, "");
  rack.world.behave("gpu0003/driver.nvidia-570").blocked =
      "the old package is not in the repository any more";
  ASSERT_EQ(rack.rollBack(store).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::RolledBack);
  EXPECT_EQ(record.count(RolloutNodeState::Returned), 3u);
  EXPECT_EQ(record.of(NodeName("gpu0003")).state, RolloutNodeState::RollbackFailed);
  EXPECT_THAT(reasonsOf(store),
              HasSubstr("gpu0003 could not be rolled back: gpu0003/driver.nvidia-570: the old "
                        "package is not in the repository any more"));
}

TEST(Rollout, pauseFinishesWhatIsUnderWayAndResumeGoesOn) {
  RolloutRack rack(30, 10);
  MemoryStore store;
  bool told = false;
  rack.provision.after_act = [&] {
    if (std::exchange(told, true)) return;
    auto record = RolloutRack::record(store);
    ASSERT_TRUE(orderRollout(record, Order::Pause, "ann", false));
  };
  ASSERT_EQ(rack.start(store).error, "");
  auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Paused);
  EXPECT_EQ(record.count(RolloutNodeState::Started), 0u);
  EXPECT_GT(record.count(RolloutNodeState::Waiting), 20u);
  EXPECT_EQ(rack.working(), 30);
  ASSERT_EQ(rack.resume(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Done) << reasonsOf(store);
  for (const auto& node : rack.declared.nodes)
    EXPECT_EQ(rack.world.effects(node.name.str() + "/driver.nvidia-575"), 1);
}

TEST(Rollout, abortKeepsWhatIsChangedAndPlainPlansDoNotUndoIt) {
  RolloutRack rack(30, 10);
  MemoryStore store;
  bool told = false;
  rack.provision.after_act = [&] {
    if (std::exchange(told, true)) return;
    auto record = RolloutRack::record(store);
    ASSERT_TRUE(orderRollout(record, Order::Abort, "ann", false));
  };
  ASSERT_EQ(rack.start(store).error, "");
  auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Aborted);
  const auto changed = record.count(RolloutNodeState::Done);
  ASSERT_GT(changed, 0u);
  EXPECT_FALSE(prepareResume(record, ""));
  EffectiveCluster live(rack.declared);
  ASSERT_TRUE(applyOverlays(live, store));
  std::size_t on_575 = 0;
  for (const auto& node : live.cluster().nodes)
    on_575 += live.cluster().profileOf(node).drivers.at(0) == "nvidia-575";
  EXPECT_EQ(on_575, changed);
  ASSERT_EQ(rack.rollBack(store).error, "");
  EXPECT_EQ(rack.working(), 30);
  EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Returned), changed);
}

/// The order was given to a runner that had died: with a store on another host nobody can know
/// that.
TEST(Rollout, resumeObeysAnAbortThatNobodyWasThereToObey) {
  RolloutRack rack(12, 4);
  MemoryStore store;
  bool once = false;
  rack.provision.after_act = [&] {
    if (std::exchange(once, true)) return;
    auto record = RolloutRack::record(store);
    ASSERT_TRUE(record.takeOver(RolloutDirection::Forward)) << "by one that dies at once";
  };
  ASSERT_NE(rack.start(store, withRoomFor(3)).error, "");
  auto record = RolloutRack::record(store);
  ASSERT_EQ(record.rollout().state, RolloutState::Running);
  const auto begun = record.count(RolloutNodeState::Started) + record.count(RolloutNodeState::Done);
  ASSERT_GT(begun, 0u);
  EXPECT_THAT(
      *orderRollout(record, Order::Abort, "ann", false),
      HasSubstr("if none runs it: `muster rollout resume` finishes what is under way and ends it"));
  ASSERT_EQ(rack.resume(store).error, "");
  const auto after = RolloutRack::record(store);
  EXPECT_EQ(after.rollout().state, RolloutState::Aborted);
  EXPECT_EQ(after.count(RolloutNodeState::Started), 0u);
  EXPECT_EQ(after.count(RolloutNodeState::Done), begun)
      << "what was under way is finished, and no more";
  EXPECT_EQ(rack.working(), 12);
  ASSERT_EQ(rack.rollBack(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::RolledBack)
      << "an abort does not stand for the way back";
}

TEST(Rollout, aNodeThatNeedsMoreThanWasFrozenIsSkippedAndOneThatNeedsLessIsNot) {
  RolloutRack rack(8, 4);
  MemoryStore store;
  rack.provision.after_act = [&] {
    rack.world.set("gpu0007/pool", "out");  // need not be drained any more
    rack.extra.insert("gpu0008");           // somebody has declared more for it meanwhile
  };
  ASSERT_EQ(rack.start(store, withRoomFor(4)).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Done) << reasonsOf(store);
  EXPECT_EQ(record.of(NodeName("gpu0007")).state, RolloutNodeState::Done);
  EXPECT_EQ(record.of(NodeName("gpu0008")).state, RolloutNodeState::Skipped);
  EXPECT_EQ(record.of(NodeName("gpu0008")).why,
            "changed since the plan was frozen: gpu0008/firmware.BMC is needed now and was not "
            "when the plan was frozen");
  EXPECT_EQ(rack.world.effects("gpu0008/pool"), 0);
  EXPECT_EQ(rack.value("gpu0008/driver.nvidia-575"), "570.1");
}

TEST(Rollout, anImageNeedsLeaveToWipeAndUsesItOnceForEachNode) {
  RolloutRack rack(6, 3);
  rack.with_images = true;
  rack.change = test::kToNoble2;
  MemoryStore store;
  EXPECT_THAT(rack.start(store).error,
              testing::AllOf(HasSubstr("no node can go; gpu0001: "), HasSubstr("would be wiped"),
                             HasSubstr("muster wipe gpu0001")));
  EXPECT_TRUE(rack.world.effect_counts.empty());
  rack.wipe_reason = "new image";
  ASSERT_EQ(rack.start(store).error, "");
  auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Done) << reasonsOf(store);
  EXPECT_THAT(
      record.rollout().irreversible,
      ElementsAre(HasSubstr("gpu[0001-0006]: the disk is wiped again to bring back image noble")));
  EXPECT_TRUE(store.wipeGrants()->empty()) << "no leave is left over";
  ASSERT_EQ(rack.rollBack(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Returned), 6u) << reasonsOf(store);
  for (const auto& node : rack.declared.nodes) {
    EXPECT_EQ(rack.world.effects(node.name.str() + "/image"), 2) << "there and back";
    EXPECT_EQ(rack.value(node.name.str() + "/image"), "noble");
  }
  EXPECT_TRUE(store.wipeGrants()->empty());
}

TEST(Rollout, theInventorysLaterWordOutranksIt) {
  RolloutRack rack(4, 2);
  MemoryStore store;
  ASSERT_EQ(rack.start(store).error, "");
  const auto driverNow = [&] {
    EffectiveCluster live(rack.declared);
    EXPECT_TRUE(applyOverlays(live, store));
    return live.cluster().profileOf(live.cluster().nodes[0]).drivers.at(0);
  };
  EXPECT_EQ(driverNow(), "nvidia-575");
  rack.declared.profiles["gpu"].drivers = {
      "nvidia-575"};  // written into the inventory: nothing lies over it any more
  EffectiveCluster same(rack.declared);
  ASSERT_TRUE(applyOverlays(same, store));
  EXPECT_EQ(same.cluster().digest, rack.declared.digest);
  rack.declared.drivers["nvidia-580"] = {.name = "nvidia-580",
                                         .packages = {"nvidia-driver=580.1"},
                                         .verify = {{"nvml.driver", "580.1"}}};
  rack.declared.profiles["gpu"].drivers = {"nvidia-580"};
  EXPECT_EQ(driverNow(), "nvidia-580") << "an old rollout hides no new wish";
  ASSERT_EQ(rack.rollBack(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::RollbackFailed), 4u);
  EXPECT_THAT(reasonsOf(store),
              HasSubstr("the inventory itself was edited since, and takes precedence"));
  EffectiveCluster live(rack.declared);
  ASSERT_TRUE(applyOverlays(live, store));
  ASSERT_TRUE(dropMerged(live, store));
  EXPECT_THAT(*RolloutRecord::list(store), testing::IsEmpty());
}

TEST(Rollout, onlyOneIsOpenAtATime) {
  RolloutRack rack(8, 4);
  rack.world.behave("gpu0001/gate.burn-in").becomes = "fail:nvidia-575";
  MemoryStore store;
  ASSERT_EQ(rack.start(store).error, "");
  EXPECT_THAT(rack.start(store).error,
              HasSubstr("rollout r1 is halted; go on with `muster rollout resume`"));
}

TEST(Rollout, anotherRunnerThatTakesOverStopsTheFirst) {
  RolloutRack rack(8, 4);
  MemoryStore store;
  bool once = false;
  rack.provision.after_act = [&] {
    if (std::exchange(once, true)) return;
    auto record = RolloutRack::record(store);
    ASSERT_TRUE(record.takeOver(RolloutDirection::Forward));
  };
  EXPECT_THAT(rack.start(store).error, HasSubstr("another muster runs rollout r1 now"));
  ASSERT_EQ(rack.resume(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Done) << reasonsOf(store);
  for (const auto& node : rack.declared.nodes)
    EXPECT_EQ(rack.world.effects(node.name.str() + "/driver.nvidia-575"), 1);
}

/// From the moment when so many nodes are done, the pool is away for this long.
std::function<bool()> awayAfter(RolloutRack& rack, MemoryStore& store, std::size_t done,
                                std::chrono::minutes how_long) {
  return [&rack, &store, done, how_long, since = std::optional<WallTime>()]() mutable {
    if (const auto record = RolloutRecord::newest(store);
        !since && record && record->count(RolloutNodeState::Done) >= done)
      since = rack.clock.now();
    return since && rack.clock.now() < *since + how_long;
  };
}

TEST(Rollout, aPoolThatIsAwayForMinutesCostsTimeAndNoNode) {
  for (const std::size_t done : {3u, 4u, 5u, 6u}) {
    RolloutRack rack(12, 4);
    MemoryStore store;
    rack.pool.away = awayAfter(rack, store, done, std::chrono::minutes(5));
    ASSERT_EQ(rack.start(store, withRoomFor(3)).error, "");
    const auto record = RolloutRack::record(store);
    EXPECT_EQ(record.rollout().state, RolloutState::Done) << reasonsOf(store);
    EXPECT_EQ(record.count(RolloutNodeState::Done), 12u);
    EXPECT_EQ(rack.working(), 12);
    for (const auto& [node, progress] : record.progress())
      EXPECT_EQ(progress.state, RolloutNodeState::Done) << node.str() << ": " << progress.why;
  }
}

/// The canary is changed and joins; then its pool is away before anything is disturbed, and before
/// it is read again.
TEST(Rollout, aPoolThatIsAwayWhileANodeIsChangedFailsNothing) {
  for (const auto* facet : {"driver.nvidia-575", "gate.burn-in", "pool"}) {
    RolloutRack rack(6, 3);
    MemoryStore store;
    std::optional<WallTime> since;
    const auto begin = [&](const lifecycle::Action& action) {
      if (!since && action.facet.facet.str() == facet &&
          rack.world.effects("gpu0001/" + std::string(facet)) > 0)
        since = rack.clock.now();
    };
    rack.validate.side_effects = rack.pool.side_effects = begin;
    rack.provision.side_effects =
        [&begin, before = rack.provision.side_effects](const lifecycle::Action& action) {
          before(action), begin(action);
        };
    rack.pool.away = [&] { return since && rack.clock.now() < *since + std::chrono::minutes(5); };
    ASSERT_EQ(rack.start(store, withRoomFor(2)).error, "");
    const auto record = RolloutRack::record(store);
    EXPECT_TRUE(since) << facet;
    EXPECT_EQ(record.count(RolloutNodeState::Done), 6u) << facet << ": " << reasonsOf(store);
  }
}

TEST(Rollout, aPoolThatStaysAwayHaltsItAndSkipsNobody) {
  RolloutRack rack(8, 4);
  MemoryStore store;
  rack.pool.away = awayAfter(rack, store, 4, std::chrono::hours(5));
  ASSERT_EQ(rack.start(store, withRoomFor(1)).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_EQ(record.rollout().state, RolloutState::Halted);
  EXPECT_THAT(reasonsOf(store), HasSubstr("has not answered for 30 minutes"));
  EXPECT_EQ(record.count(RolloutNodeState::Done), 4u);
  EXPECT_EQ(record.count(RolloutNodeState::Waiting), 4u);
  rack.clock.advance(std::chrono::hours(5));
  ASSERT_EQ(rack.resume(store).error, "");
  EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Done), 8u) << reasonsOf(store);
}

TEST(Rollout, anOrderReachesARolloutThatWaitsForAPool) {
  RolloutRack rack(8, 4);
  MemoryStore store;
  const auto away = awayAfter(rack, store, 4, std::chrono::hours(5));
  rack.pool.away = [&store, away]() mutable {
    if (!away()) return false;
    auto record = RolloutRack::record(store);
    if (record.order()->order == Order::None) {
      EXPECT_TRUE(orderRollout(record, Order::Pause, "ann", false));
    }
    return true;
  };
  ASSERT_EQ(rack.start(store, withRoomFor(1)).error, "");
  EXPECT_EQ(RolloutRack::record(store).rollout().state, RolloutState::Paused);
  EXPECT_EQ(RolloutRack::record(store).count(RolloutNodeState::Waiting), 4u);
}

/// 400 nodes over racks of 16; some are down from the beginning.
TEST(Rollout, neverTakesMoreNodesOutThanTheCeilingsAllow) {
  RolloutRack rack(400, 16);
  const std::set<std::string> down{"gpu0003", "gpu0200", "gpu0391", "gpu0392"};
  std::vector<std::pair<FacetRef, std::string>> places;  // pool facet, rack
  for (const auto& node : rack.declared.nodes) {
    if (down.contains(node.name.str()))
      rack.world.set(node.name.str() + "/pool", "drained");
    else
      rack.only.push_back(node.name);
    places.emplace_back(test::FakeWorld::ref(node.name.str() + "/pool"), node.rack);
  }
  inventory::RolloutPolicy policy;
  policy.max_unavailable.pool = {std::nullopt, 5};
  policy.max_unavailable.rack = {2, std::nullopt};
  std::size_t most_in_pool = 0, most_in_rack = 0;
  rack.pool.after_act = [&] {
    std::map<std::string, std::size_t> out;
    std::size_t all = 0;
    for (const auto& [pool, name] : places)
      if (rack.world.values.at(pool) != "in")
        most_in_rack = std::max(most_in_rack, ++out[name]), ++all;
    most_in_pool = std::max(most_in_pool, all);
  };
  MemoryStore store;
  ASSERT_EQ(rack.start(store, policy).error, "");
  const auto record = RolloutRack::record(store);
  EXPECT_LE(most_in_pool, 20u);
  EXPECT_GT(most_in_pool, 16u) << "the room is used";
  EXPECT_EQ(most_in_rack, 2u);
  EXPECT_EQ(record.count(RolloutNodeState::Done), 400u - 16 - 2);
  // Rack r25 has two nodes down already: nobody else of it may go, and the rollout says so instead
  // of going over it.
  EXPECT_EQ(record.rollout().state, RolloutState::Halted);
  EXPECT_THAT(reasonsOf(store),
              HasSubstr("2 of 16 nodes of rack r25 are out of work, and 2 may be: gpu[0391-0392]"));
  EXPECT_EQ(rack.world.effects("gpu0390/pool"), 0);
}

}  // namespace
}  // namespace muster::lifecycle
