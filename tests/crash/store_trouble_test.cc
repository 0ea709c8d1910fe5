// SPDX-License-Identifier: Apache-2.0
// A store that cannot be written or reached for a while, or whose answers are lost, from each write
// of all stages and of rollouts on: muster stops acting and says why, or waits; afterwards it
// goes on, and nothing is done twice.
#include "tests/crash/kill_points.h"
#include "tests/crash/real_rollout.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

/// A node from power-off into its pool, with all that an installation is.
class EndToEndTrial final : public Trial {
 public:
  std::string story() override { return storyOf(store_); }
  LifeEnd live(Death death) override { return test::live(rack_, store_, death); }
  void expectTheEnd() override {
    EXPECT_THAT(rack_.violations, IsEmpty());
    EXPECT_EQ(rack_.uploads("gpu001", "BMC"), 1);
    EXPECT_EQ(rack_.uploads("gpu001", "BIOS"), 1);
    EXPECT_EQ(rack_.machines[NodeName("gpu001")].image_writes, 1);
    EXPECT_EQ(rack_.machines[NodeName("gpu001")].driver_installs["rdma"], 1);
    EXPECT_TRUE(rack_.inPool("gpu001"));
    EXPECT_THAT(*store_.openIntents(), IsEmpty());
    EXPECT_THAT(*store_.claims(), IsEmpty());
  }

 private:
  SimulatedRack rack_{{"gpu001"}};
  MemoryStore store_;
};

MakeTrial endToEnd() {
  return [] { return std::make_unique<EndToEndTrial>(); };
}

Death troubled(std::chrono::seconds lasts, int writes, Error error, bool made, bool reads) {
  return {
      .trouble_writes = writes, .trouble_lasts = lasts, .trouble = {std::move(error), made, reads}};
}

const Error kReadOnly =
    Error(ErrorCode::Unavailable, "attempt to write a readonly database").retryable(false);
const Error kGone = Error(ErrorCode::Unavailable, "the connection is lost");
const Error kTaken = Error(ErrorCode::Conflict, "another controller was faster");

TEST(StoreTrouble, readOnlyForMinutes) {
  troubleAtEveryWrite(endToEnd(), troubled(5min, 0, kReadOnly, false, false));
}
TEST(StoreTrouble, readOnlyForOneWrite) {
  troubleAtEveryWrite(endToEnd(), troubled(0s, 1, kReadOnly, false, false));
}
TEST(StoreTrouble, unreachableForMinutes) {
  troubleAtEveryWrite(endToEnd(), troubled(5min, 0, kGone, false, true));
}
TEST(StoreTrouble, unreachableForOneWrite) {
  troubleAtEveryWrite(endToEnd(), troubled(0s, 1, kGone, false, false));
}
TEST(StoreTrouble, theAnswerToOneWriteIsLost) {
  troubleAtEveryWrite(endToEnd(), troubled(0s, 1, kGone, true, false));
}
TEST(StoreTrouble, conflictAtOneWrite) {
  troubleAtEveryWrite(endToEnd(), troubled(0s, 1, kTaken, false, false));
}
TEST(StoreTrouble, killedTwiceAtPairsOfWritesFromEndToEnd) { killTwice(endToEnd(), {.pairs = 60}); }

}  // namespace
}  // namespace muster::test
