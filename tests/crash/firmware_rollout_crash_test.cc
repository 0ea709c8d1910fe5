// SPDX-License-Identifier: Apache-2.0
// Rollouts of firmware with the real phases, in two waves, killed at every write, once and twice:
// each component of each node is flashed once on its way there and once on its way back, no job is
// killed, and every node takes jobs again at the end.
#include "tests/crash/kill_points.h"
#include "tests/crash/real_rollout.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::RolloutDirection;
using lifecycle::RolloutRecord;
using lifecycle::RolloutState;
using ::testing::IsEmpty;

constexpr const char* kTwoWaves = "canary: {nodes: 1}, waves: [100]";

class FirmwareTrial : public Trial {
 public:
  FirmwareTrial() {
    EXPECT_TRUE(test::live(rack_, store_).ok);
    change_ = toBios150(rack_, kTwoWaves);
    begin();
  }

  LifeEnd live(Death death) override {
    const auto book = RolloutRecord::newest(store_);
    if (book && !book->rollout().isOpen()) return {.ok = true};
    const auto end = rollOut(rack_, store_, book ? "" : change_, RolloutDirection::Forward, death);
    refused_ += end.refused;
    return end;
  }

  std::string story() override { return storyOf(store_); }

  void expectTheEnd() override {
    const auto book = RolloutRecord::newest(store_);
    ASSERT_TRUE(book);
    EXPECT_EQ(book->rollout().state, state_)
        << fmt::format("{}", fmt::join(book->rollout().reasons, "\n"));
    EXPECT_EQ(book->count(wanted_), rack_.machines.size());
    EXPECT_THAT(rack_.violations, IsEmpty());
    for (const auto& [node, machine] : rack_.machines) {
      SCOPED_TRACE(node.str());
      EXPECT_EQ(rack_.bmcs.fake(node).components["BIOS"].version, bios_);
      EXPECT_EQ(rack_.uploads(node.str(), "BIOS"), uploads_);
      EXPECT_EQ(rack_.uploads(node.str(), "BMC"), 0);
      EXPECT_EQ(machine.image_writes, 0);
      EXPECT_THAT(machine.driver_installs, IsEmpty());
      EXPECT_TRUE(rack_.inPool(node.str()));
    }
    EXPECT_THAT(*store_.openIntents(), IsEmpty());
    if (refused_ > 0)
      (void)store_.signOn(lifecycle::Origin{}.holder,
                          1min);  // one that could not be given back ends with its lease
    EXPECT_THAT(*store_.claims(), IsEmpty());
    EXPECT_THAT(*store_.wipeGrants(), IsEmpty());
    EXPECT_THAT(*store_.findings(nullptr), IsEmpty());
  }

 protected:
  void begin() {
    rack_.forgetCounts();
    rack_.startJob("gpu001", 300s);
    rack_.startJob("gpu002", 400s);
  }

  SimulatedRack rack_{{"gpu001", "gpu002"}};
  MemoryStore store_;
  std::string change_;
  RolloutState state_ = RolloutState::Done;
  lifecycle::RolloutNodeState wanted_ = lifecycle::RolloutNodeState::Done;
  std::string bios_ = "1.5.0";
  int uploads_ = 1;
  int refused_ = 0;
};

/// Rolled out before; what is killed is the way back.
class RollbackOfFirmware : public FirmwareTrial {
 public:
  RollbackOfFirmware() {
    EXPECT_TRUE(rollOut(rack_, store_, change_).ok);
    begin();
    state_ = RolloutState::RolledBack;
    wanted_ = lifecycle::RolloutNodeState::Returned;
    bios_ = "1.4.2";
  }
  LifeEnd live(Death death) override {
    if (RolloutRecord::newest(store_)->rollout().state == RolloutState::RolledBack)
      return {.ok = true};
    return rollOut(rack_, store_, "", RolloutDirection::Back, death);
  }
};

/// The new BIOS fails its gate on the canary: the policy takes it back by itself, and the second
/// node is never touched.
class FailedGate : public FirmwareTrial {
 public:
  FailedGate() {
    rack_.broken_bios = "1.5.0";
    change_ = toBios150(rack_, std::string(kTwoWaves) + ", on_failure: roll-back");
    state_ = RolloutState::RolledBack;
    bios_ = "1.4.2";
  }
  void expectTheEnd() override {
    const auto book = RolloutRecord::newest(store_);
    ASSERT_TRUE(book);
    EXPECT_EQ(book->rollout().state, RolloutState::RolledBack)
        << fmt::format("{}", fmt::join(book->rollout().reasons, "\n"));
    EXPECT_EQ(book->count(lifecycle::RolloutNodeState::Returned), 1u);
    EXPECT_THAT(rack_.violations, IsEmpty());
    int uploads = 0;
    for (const auto& [node, machine] : rack_.machines) {
      SCOPED_TRACE(node.str());
      EXPECT_EQ(rack_.bmcs.fake(node).components["BIOS"].version, bios_);
      uploads += rack_.uploads(node.str(), "BIOS");
      EXPECT_EQ(rack_.uploads(node.str(), "BMC"), 0);
      EXPECT_TRUE(rack_.inPool(node.str()));
    }
    EXPECT_EQ(uploads, 2) << "there and back";
    EXPECT_THAT(*store_.openIntents(), IsEmpty());
    EXPECT_THAT(*store_.claims(), IsEmpty());
    EXPECT_THAT(*store_.findings(nullptr), IsEmpty());
  }
};

TEST(FirmwareRolloutCrash, atEveryWriteEachComponentIsFlashedOnce) {
  killAtEveryWrite(trials<FirmwareTrial>(), 80, {.every = 3});
}
TEST(FirmwareRolloutCrash, twiceAtPairsOfWrites) {
  killTwice(trials<FirmwareTrial>(), {.pairs = 60});
}
TEST(FirmwareRolloutCrash, atEveryWriteOfTheWayBack) {
  killAtEveryWrite(trials<RollbackOfFirmware>(), 60, {.every = 4});
}
TEST(FirmwareRolloutCrash, twiceOnTheWayBack) {
  killTwice(trials<RollbackOfFirmware>(), {.pairs = 40});
}
TEST(FirmwareRolloutCrash, atEveryWriteOfAGateThatFailsAndTheRollbackThatFollows) {
  killAtEveryWrite(trials<FailedGate>(), 80, {.every = 2});
}
TEST(FirmwareRolloutCrash, twiceWhileAGateFails) { killTwice(trials<FailedGate>(), {.pairs = 40}); }
TEST(FirmwareRolloutCrash, aStoreThatIsReadOnlyForMinutesDelaysItOnly) {
  troubleAtEveryWrite(trials<FirmwareTrial>(), kReadOnlyForMinutes, {.every = 5});
}
TEST(FirmwareRolloutCrash, aStoreThatIsReadOnlyForMinutesDelaysARollbackOnly) {
  troubleAtEveryWrite(trials<FailedGate>(), kReadOnlyForMinutes, {.every = 3});
}

TEST(FirmwareRolloutCrash, oneWriteThatIsRefusedFailsNoNodeForGood) {
  auto once = kReadOnlyForMinutes;
  once.trouble_lasts = 0s;
  once.trouble_writes = 1;
  troubleAtEveryWrite(trials<FirmwareTrial>(), once, {.every = 5});
}

}  // namespace
}  // namespace muster::test
