// SPDX-License-Identifier: Apache-2.0
// The monitor releases the state folder for a command, and takes it again when that has ended.
#include "app/site/state_lock.h"

#include "lifecycle/store/store_loss.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace muster::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StateLock, aCommandAloneHasItAtOnceAndTheMonitorSeesTheRequest) {
  test::TempFolder state;
  EXPECT_FALSE(isLockRequested(state.path()));
  {
    auto turn = acquireLock(state.path());
    ASSERT_TRUE(turn) << turn.error().str();
    EXPECT_TRUE(isLockRequested(state.path()));
  }
  EXPECT_FALSE(isLockRequested(state.path())) << "who is gone asks for nothing";
}

TEST(StateLock, theMonitorReleasesItForACommandAndTakesItAgain) {
  test::TempFolder state;
  const auto instance = acquireMonitorInstance(state.path());
  ASSERT_TRUE(instance);
  auto keepers = std::make_optional(acquireMonitorLock(state.path(), *instance));
  ASSERT_TRUE(*keepers);
  EXPECT_FALSE(isLockRequested(state.path())) << "the monitor itself does not request it";
  auto command = std::async(std::launch::async, [&state] { return acquireLock(state.path()); });
  while (!isLockRequested(state.path()))
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // a look takes the place for a moment: not all the time
  EXPECT_NE(command.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "two at work";
  keepers.reset();
  {
    auto turn = command.get();
    ASSERT_TRUE(turn) << turn.error().str();
    auto again =
        std::async(std::launch::async, [&] { return acquireMonitorLock(state.path(), *instance); });
    EXPECT_EQ(again.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    turn = fail(ErrorCode::Unavailable, "it has ended");
    EXPECT_TRUE(again.get()) << "the monitor waits for as long as it takes";
  }
}

TEST(StateLock, thereIsOneMonitorToAFolder) {
  test::TempFolder state;
  auto place = acquireMonitorInstance(state.path());
  ASSERT_TRUE(place);
  EXPECT_THAT(acquireMonitorInstance(state.path()).error().str(),
              HasSubstr("a muster monitor of this state folder runs already"));
}

TEST(StateLock, aLockThatWasTakenAwayIsNotTakenBeforeItsHolderCanNotice) {
  test::TempFolder state;
  auto first = acquireMonitorInstance(state.path());
  ASSERT_TRUE(first);
  ASSERT_TRUE(io::writeFileAtomic(state.path() / lifecycle::kMarkOfUse, "used"));
  EXPECT_EQ(acquireMonitorLock(state.path(), *first)->lost(), std::nullopt);
  std::filesystem::remove(state / "keep");
  const auto held = acquireMonitorLock(state.path(), *first);
  EXPECT_EQ(held->lost(), state / "keep");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(acquireMonitorInstance(state.path()));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 2 * kLockLookPeriod);
}

/// A folder that cannot be written has no monitor yet.
TEST(StateLock, anotherTroubleIsNotTakenForAMonitor) {
  test::TempFolder state;
  std::filesystem::create_directory(state / "keep");
  const auto refused = acquireMonitorInstance(state.path());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), Not(HasSubstr("runs already")));
  EXPECT_THAT(refused.error().str(), HasSubstr("keep"));
}

}  // namespace
}  // namespace muster::app
