// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: keep stands aside for a command, and comes back when it has ended.
#include "app/state_lock.h"

#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

TEST(app::Turn, aCommandAloneHasItAtOnceAndKeepSeesThatItIsNotAlone) {
  test::TempFolder state;
  EXPECT_FALSE(app::isAskedFor(state.path()));
  {
    auto turn = app::takeTurn(state.path());
    ASSERT_TRUE(turn) << turn.error().str();
    EXPECT_TRUE(app::isAskedFor(state.path()));
  }
  EXPECT_FALSE(app::isAskedFor(state.path())) << "who is gone asks for nothing";
}

TEST(app::Turn, keepStandsAsideForACommandAndComesBackAfterIt) {
  test::TempFolder state;
  auto keepers = std::make_optional(app::takeKeepersTurn(state.path()));
  ASSERT_TRUE(*keepers);
  EXPECT_FALSE(app::isAskedFor(state.path()))
      << "keep itself leaves the place free where others ask";
  auto command = std::async(std::launch::async, [&state] { return app::takeTurn(state.path()); });
  while (!app::isAskedFor(state.path()))
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // a look takes the place for a moment: not all the time
  EXPECT_NE(command.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "two at work";
  keepers.reset();
  {
    auto turn = command.get();
    ASSERT_TRUE(turn) << turn.error().str();
    auto again =
        std::async(std::launch::async, [&state] { return app::takeKeepersTurn(state.path()); });
    EXPECT_EQ(again.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    turn = fail(ErrorCode::Unavailable, "it has ended");
    EXPECT_TRUE(again.get()) << "keep waits for as long as it takes";
  }
}

TEST(app::Turn, thereIsOneKeeperToAFolder) {
  test::TempFolder state;
  auto place = app::takeKeepersPlace(state.path());
  ASSERT_TRUE(place);
  EXPECT_THAT(app::takeKeepersPlace(state.path()).error().str(),
              HasSubstr("there is a muster keep already"));
}

}  // namespace
}  // namespace muster::cli
