// SPDX-License-Identifier: Apache-2.0
// A drain's deadline, on clocks that somebody sets.
#include "pool/drain_deadline.h"

#include "tests/pool/step_clock.h"

#include <gtest/gtest.h>

namespace muster::pool {
namespace {

using namespace std::chrono_literals;

class DrainDeadlineTest : public testing::Test {
 protected:
  bool isOver(const inventory::DrainPolicy& policy) {
    return deadline_.isOver(NodeName("gpu001"), member_, policy);
  }
  test::StepClock clock_;
  DrainDeadline deadline_{clock_};
  Member member_{.draining_since = clock_.now()};
  const inventory::DrainPolicy wait_{60, inventory::OnTimeout::Wait},
      delete_pods_{60, inventory::OnTimeout::DeletePods};
};

TEST_F(DrainDeadlineTest, isOverAfterItsMinutes) {
  for (const auto& policy : {wait_, delete_pods_}) EXPECT_FALSE(isOver(policy));
  clock_.advance(59min);
  for (const auto& policy : {wait_, delete_pods_}) EXPECT_FALSE(isOver(policy));
  clock_.advance(1min);
  for (const auto& policy : {wait_, delete_pods_}) EXPECT_TRUE(isOver(policy));
}

TEST_F(DrainDeadlineTest, withoutADeadlineOrABeginningItNeverIs) {
  clock_.advance(24h);
  EXPECT_FALSE(isOver({}));
  member_.draining_since = std::nullopt;
  EXPECT_FALSE(isOver(wait_));
}

TEST_F(DrainDeadlineTest, workIsNotEndedOnTheWordOfAWallClockThatWasSet) {
  EXPECT_FALSE(isOver(delete_pods_));
  clock_.setForward(24h);
  EXPECT_TRUE(isOver(wait_)) << "what can be undone";
  EXPECT_FALSE(isOver(delete_pods_));
  clock_.advance(59min);
  EXPECT_FALSE(isOver(delete_pods_));
  clock_.advance(1min);
  EXPECT_TRUE(isOver(delete_pods_));
}

TEST_F(DrainDeadlineTest, whatWasOverAtTheFirstLookIsBelievedAfterMinutes) {
  member_.draining_since = clock_.now() - 24h;
  EXPECT_FALSE(isOver(delete_pods_));
  clock_.advance(5min);
  EXPECT_TRUE(isOver(delete_pods_));
}

TEST_F(DrainDeadlineTest, anotherDrainOfTheNodeBeginsAnew) {
  clock_.advance(60min);
  EXPECT_TRUE(isOver(wait_));
  member_.draining_since = clock_.now();
  EXPECT_FALSE(isOver(wait_));
  EXPECT_FALSE(isOver(delete_pods_));
}

}  // namespace
}  // namespace muster::pool
