// What a rollout must not do to a cluster when things go wrong around it, in virtual time.
#include "tests/lifecycle/rollout_rack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::MemoryStore;
using test::RolloutRack;
using testing::ElementsAre;
using testing::HasSubstr;

std::string reasonsOf(MemoryStore& store) { return fmt::format("{}", fmt::join(RolloutRack::book(store).rollout().reasons, "\n")); }

void withImages(RolloutRack& rack) {
  rack.with_images = true;
  rack.change = test::kToNoble2;
  rack.wipe_reason = "new image";
}

/// The canary fails before its image comes up: months later nobody would remember that its disk may be wiped.
TEST(RolloutGuard, aLeaveToWipeThatWasNotUsedEndsWithTheTurnOfItsNode) {
  RolloutRack rack(6, 3);
  withImages(rack);
  rack.world.behave("gpu0001/pool").blocked = "a job runs until Friday";
  MemoryStore store;
  ASSERT_TRUE(store.allowWipe(NodeName("gpu0006"), "by hand", {}));
  ASSERT_EQ(rack.start(store).error, "");
  EXPECT_EQ(RolloutRack::book(store).of(NodeName("gpu0001")).state, NodeState::Failed) << reasonsOf(store);
  EXPECT_EQ(rack.world.effects("gpu0001/image"), 0);
  EXPECT_THAT(*store.wipesAllowed(), ElementsAre(NodeName("gpu0006"))) << "that one is a person's";
  ASSERT_EQ(rack.rollBack(store).error, "");
  EXPECT_THAT(*store.wipesAllowed(), ElementsAre(NodeName("gpu0006")));
}

TEST(RolloutGuard, anAbortTakesBackTheLeavesOfNodesThatADeadRunnerHasStarted) {
  int abandoned = 0;
  bool over = false;
  for (int at = 0; !over; ++at) {
    RolloutRack rack(2, 2);
    withImages(rack);
    MemoryStore store;
    over = !rack.start(store, {}, at, true).crashed;
    if (over || !RolloutBook::newest(store) || !RolloutRack::book(store).rollout().isOpen()) continue;
    abandoned += !store.wipesAllowed()->empty();
    auto book = RolloutRack::book(store);
    ASSERT_TRUE(orderRollout(book, Order::Abort, "ann", true));
    EXPECT_TRUE(store.wipesAllowed()->empty()) << "write " << at;
  }
  EXPECT_GT(abandoned, 0);
}

}  // namespace
}  // namespace muster::lifecycle
