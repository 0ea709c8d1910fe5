// SPDX-License-Identifier: Apache-2.0
// Rollouts on top of each other: which of them can be undone, and what stays.
#include "inventory/model/cluster.h"
#include "inventory/model/rollout_policy.h"
#include "lifecycle/rollout/status.h"
#include "tests/lifecycle/rollout_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::MemoryStore;
using test::RolloutRack;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kTo570 = "profiles: {gpu: {drivers: [nvidia-570]}}\n";

class Undo : public testing::Test {
 protected:
  Undo() {
    rack_.with_images = true;
    rack_.wipe_reason = "noble 2";
  }
  void rollOut(const std::string& id, const std::string& change, std::vector<std::string> nodes) {
    rack_.id = id;
    rack_.change = change;
    rack_.only = {nodes.begin(), nodes.end()};
    inventory::RolloutPolicy policy;
    policy.max_unavailable.pool = {100, std::nullopt};
    policy.regression.on_inconclusive = inventory::OnInconclusive::Continue;
    ASSERT_EQ(rack_.start(store_, policy).error, "");
    ASSERT_EQ(record(id).rollout().state, RolloutState::Done) << id;
  }
  void rollBack(const std::string& id) {
    ASSERT_EQ(refused(id), "");
    rack_.going = id;
    ASSERT_EQ(rack_.rollBack(store_).error, "");
    rack_.going.clear();
    EXPECT_EQ(record(id).rollout().state, RolloutState::RolledBack);
    EXPECT_EQ(record(id).count(RolloutNodeState::RollbackFailed), 0u);
  }
  RolloutRecord record(const std::string& id) { return *RolloutRecord::open(store_, id); }
  std::string refused(const std::string& id) {
    const auto may = mayRollBack(rack_.declared, store_, record(id));
    return may ? "" : may.error().str();
  }
  std::string driver(const std::string& node) { return rack_.value(node + "/driver.nvidia-570"); }
  std::string image(const std::string& node) { return rack_.value(node + "/image"); }

  RolloutRack rack_{6, 3};
  MemoryStore store_;
};

/// Drivers of four nodes; then the image of four, of which two have both. The drivers go back, the
/// images stay, nothing is wiped for it.
TEST_F(Undo, anOlderOneGoesBackAndWhatCameLaterStays) {
  rollOut("r1", test::kTo575, {"gpu0001", "gpu0002", "gpu0003", "gpu0004"});
  rollOut("r2", test::kToNoble2, {"gpu0003", "gpu0004", "gpu0005", "gpu0006"});
  ASSERT_EQ(driver("gpu0003"), "575.1");
  ASSERT_EQ(image("gpu0003"), "noble-2");
  rollBack("r1");
  for (const auto& node : rack_.declared.nodes)
    EXPECT_EQ(driver(node.name.str()), "570.1") << node.name.str();
  for (const auto* node : {"gpu0003", "gpu0004", "gpu0005", "gpu0006"}) {
    EXPECT_EQ(image(node), "noble-2") << node;
    EXPECT_EQ(rack_.world.effects(std::string(node) + "/image"), 1) << node;
  }
  EXPECT_EQ(rack_.working(), 6);
  EXPECT_EQ(record("r2").rollout().state, RolloutState::Done);
  EXPECT_EQ(RolloutRecord::current(store_)->rollout().id, "r2");
  EXPECT_THAT(refused("r1"), HasSubstr("rolled back already"));
  rollBack("r2");
  for (const auto& node : rack_.declared.nodes)
    EXPECT_EQ(image(node.name.str()), "noble") << node.name.str();
}

TEST_F(Undo, whatALaterOneHasSetOfTheSameNodesHasToGoBackFirst) {
  rollOut("r1", test::kTo575, {"gpu0001", "gpu0002", "gpu0003", "gpu0004"});
  rollOut("r2", kTo570, {"gpu0003", "gpu0004"});
  ASSERT_EQ(driver("gpu0003"), "570.1");
  EXPECT_THAT(refused("r1"), AllOf(HasSubstr("rollout r2 has set drivers of gpu[0003-0004] since"),
                                   HasSubstr("muster rollout rollback --id r2")));
  rollBack("r2");
  EXPECT_EQ(driver("gpu0003"), "575.1") << "what it was before r2";
  rollBack("r1");
  for (const auto& node : rack_.declared.nodes)
    EXPECT_EQ(driver(node.name.str()), "570.1") << node.name.str();
}

TEST_F(Undo, theSameOfOtherNodesIsInNobodysWay) {
  rollOut("r1", test::kTo575, {"gpu0001", "gpu0002"});
  rollOut("r2", test::kTo575, {"gpu0003", "gpu0004"});
  rollBack("r1");
  EXPECT_EQ(driver("gpu0001"), "570.1");
  EXPECT_EQ(driver("gpu0003"), "575.1");
}

TEST_F(Undo, whatALaterOneNeedsStays) {
  rollOut("r1", std::string("images: {noble-2: {build: {suite: noble}}}\n") + test::kTo575,
          {"gpu0001"});
  rollOut("r2", "profiles: {gpu: {image: noble-2}}\n", {"gpu0002"});
  EXPECT_THAT(refused("r1"), AllOf(HasSubstr("a later change needs what it brought"),
                                   HasSubstr("rollout r2"), HasSubstr("noble-2")));
  rollBack("r2");
  rollBack("r1");
}

TEST_F(Undo, notBesideAnotherThatIsOpenAndNotWhatTheInventorySaysItself) {
  rollOut("r1", test::kTo575, {"gpu0001"});
  rollOut("r2", test::kTo575, {"gpu0002"});
  auto open = record("r2");
  auto next = open.rollout();
  next.state = RolloutState::Halted;
  ASSERT_TRUE(open.save(next));
  EXPECT_THAT(refused("r1"),
              AllOf(HasSubstr("rollout r2 is halted"), HasSubstr("muster rollout abort")));
  ASSERT_TRUE(RolloutRecord::drop(store_, {"r2"}));
  EXPECT_THAT(refused("r2"), HasSubstr("change the inventory instead"));
}

/// Its runner dies; whoever asks for "the rollout" then means this one, though a newer one is
/// there.
TEST_F(Undo, anOlderOneThatIsOnItsWayBackIsTheOneToGoOnWith) {
  rollOut("r1", test::kTo575, {"gpu0001", "gpu0002"});
  rollOut("r2", test::kTo575, {"gpu0003"});
  auto half = record("r1");
  ASSERT_TRUE(half.takeOver(RolloutDirection::Back));
  EXPECT_EQ(RolloutRecord::current(store_)->rollout().id, "r1");
  EXPECT_THAT(*rolloutStatusOf(store_, NodeName("gpu0001"), rack_.clock.now()),
              HasSubstr("rollout r1 (running)"));
  ASSERT_EQ(rack_.resume(store_).error, "");
  EXPECT_EQ(record("r1").rollout().state, RolloutState::RolledBack);
  EXPECT_EQ(driver("gpu0001"), "570.1");
  EXPECT_EQ(driver("gpu0003"), "575.1");
}

}  // namespace
}  // namespace muster::lifecycle
