// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/runs/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <deque>
#include <set>

namespace muster::lifecycle {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::vector<RunState> kStates{
    RunState::Queued,   RunState::Planning, RunState::Planned,   RunState::NeedsApproval,
    RunState::Approved, RunState::Running,  RunState::Paused,    RunState::Done,
    RunState::WorkLeft, RunState::Failed,   RunState::Cancelled, RunState::Outdated};

Run runWith(RunState state) {
  Run run;
  run.id = "r-1";
  run.asked_by = {"anna", "local", "ctl1"};
  run.state = state;
  run.plan_hash = "h";
  return run;
}

TEST(RunTable, wordsAreReadAsTheyAreWritten) {
  for (const auto state : kStates) EXPECT_EQ(parseRunState(toString(state)), state);
  EXPECT_EQ(parseRunState("enormous"), std::nullopt);
  EXPECT_EQ(parseRunReason(toString(RunReason::PlanGrew)), RunReason::PlanGrew);
  EXPECT_EQ(parseAfterRestart("pause"), AfterRestart::Pause);
}

TEST(RunTable, nothingFollowsAnEndAndEveryStateLeadsToOne) {
  for (const auto from : kStates) {
    std::set<RunState> reached{from};
    std::deque<RunState> open{from};
    while (!open.empty()) {
      const auto at = open.front();
      open.pop_front();
      for (const auto to : kStates)
        for (const auto mover : {RunMover::Person, RunMover::Executor})
          if (mayChange(at, to, mover) && reached.insert(to).second) open.push_back(to);
    }
    if (isEnd(from))
      EXPECT_EQ(reached.size(), 1u) << toString(from);
    else
      EXPECT_TRUE(reached.contains(RunState::Done) && reached.contains(RunState::Cancelled))
          << toString(from);
  }
}

/// A person orders, and the process that works on it obeys: so a run never ends under its executor.
TEST(RunTable, aPersonChangesNothingThatIsWorkedOn) {
  for (const auto to : kStates)
    for (const auto from : {RunState::Planning, RunState::Running})
      EXPECT_FALSE(mayChange(from, to, RunMover::Person)) << toString(from) << toString(to);
  EXPECT_FALSE(mayChange(RunState::NeedsApproval, RunState::Approved, RunMover::Executor))
      << "only people say yes";
  EXPECT_FALSE(mayChange(RunState::NeedsApproval, RunState::Running, RunMover::Executor));
  EXPECT_FALSE(mayChange(RunState::Queued, RunState::Running, RunMover::Executor));
}

TEST(RunChange, isStampedAndEndsTheOrderThatItFulfils) {
  auto run = runWith(RunState::Running);
  run.order = RunOrder::Pause;
  run.ordered_by = "ben";
  const auto now = WallTime(std::chrono::milliseconds(1));
  const auto paused =
      changed(run, RunState::Paused, RunReason::PausedByPerson, RunMover::Executor, "ctl1", now);
  ASSERT_TRUE(paused);
  EXPECT_EQ(paused->order, RunOrder::None);
  EXPECT_EQ(paused->stamps.back(),
            (RunStamp{RunState::Paused, RunReason::PausedByPerson, now, "ctl1"}));
  const auto refused =
      changed(*paused, RunState::Done, RunReason::None, RunMover::Executor, "", now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(), HasSubstr("run r-1 is paused: it cannot become done"));
}

TEST(RunChange, keepsABoundedHistory) {
  auto run = runWith(RunState::Queued);
  for (std::size_t i = 0; i < kMaxRunStamps; ++i) {
    run = *changed(run, RunState::Paused, RunReason::None, RunMover::Person, "a", {});
    run = *changed(run, RunState::Queued, RunReason::None, RunMover::Person, "a", {});
  }
  EXPECT_EQ(run.stamps.size(), kMaxRunStamps);
  EXPECT_TRUE(runFromRecord(recordOf(run)));
}

TEST(RunApprovals, bindOnePlanAndNeverCountTheAuthor) {
  auto run = runWith(RunState::NeedsApproval);
  EXPECT_TRUE(isAgreed(run)) << "nobody has to be asked";
  run.approvals_needed = 1;
  run.approvals = {{{"anna", "local", ""}, {}, "h", false}};
  EXPECT_FALSE(isAgreed(run)) << "the author";
  run.approvals = {{{"ben", "local", ""}, {}, "old", false}};
  EXPECT_FALSE(isAgreed(run)) << "an older plan";
  run.approvals = {{{"ben", "local", ""}, {}, "h", false}};
  EXPECT_TRUE(isAgreed(run));
  run.approvals_needed = 2;
  run.approvals.push_back({{"ben", "token", "elsewhere"}, {}, "h", false});
  EXPECT_FALSE(isAgreed(run)) << "one person counts once, however they come";
  run.plan_hash.clear();
  run.approvals_needed = 0;
  EXPECT_FALSE(isAgreed(run)) << "there is no plan";
}

/// An account is one person, whatever its provider calls it today; and the row remembers it.
TEST(RunApprovals, countAnAccountOnce) {
  const RunActor as_anna{"oidc:anna", "oidc", "", "anna", {"anna"}, "oidc:1"};
  const RunActor as_zoe{"oidc:zoe", "oidc", "", "zoe", {"zoe"}, "oidc:1"};
  const RunActor as_mia{"oidc:mia", "oidc", "", "mia", {"mia"}, "oidc:1"};
  auto run = runWith(RunState::NeedsApproval);
  run.approvals_needed = 1;
  run.asked_by = as_anna;
  run.approvals = {{as_zoe, {}, "h", false}};
  EXPECT_FALSE(isAgreed(run)) << "the author, renamed";
  EXPECT_FALSE(isAgreed(*runFromRecord(recordOf(run))));
  run.asked_by = {"ben", "local", "", "", {}, ""};
  EXPECT_TRUE(isAgreed(run));
  run.approvals_needed = 2;
  run.approvals.push_back({as_mia, {}, "h", false});
  EXPECT_FALSE(isAgreed(run)) << "one account is one approval";
  run.asked_by = {"token:t", "token", "", "carl", {"oidc:1"}, ""};
  EXPECT_EQ(approvalsOf(run), 0u) << "the account has made the token of who asks";
}

TEST(RunApprovals, aConfirmationIsNoApproval) {
  auto run = runWith(RunState::NeedsApproval);
  run.apply.confirm = true;
  EXPECT_FALSE(isAgreed(run));
  run.approvals = {{{"anna", "local", ""}, {}, "h", true}};
  EXPECT_TRUE(isAgreed(run));
  run.approvals_needed = 1;
  EXPECT_FALSE(isAgreed(run));
  run.approvals = {{{"ben", "local", ""}, {}, "h", false}};
  EXPECT_TRUE(isAgreed(run)) << "who approves it for its author has looked at it";
}

TEST(RunApprovals, anOverrideCountsForItsPlanAndForWhatItWasGiven) {
  auto run = runWith(RunState::NeedsApproval);
  run.approvals_needed = 2;
  run.overrides = {{{"root", "local", ""}, {}, "old", RunReason::AwaitsApproval, "why", "", {}}};
  EXPECT_FALSE(isAgreed(run)) << "an older plan";
  EXPECT_TRUE(hasLoudOverride(run));
  run.overrides[0].plan_hash = "h";
  EXPECT_TRUE(isAgreed(run));
  EXPECT_FALSE(mayIgnoreWindows(run)) << "its approvals are one thing, its windows another";
  run.overrides[0].against = RunReason::OutsideWindow;
  EXPECT_FALSE(isAgreed(run));
  EXPECT_TRUE(mayIgnoreWindows(run));
  run.overrides[0].acknowledged_by = "anna";
  EXPECT_FALSE(hasLoudOverride(run));
}

TEST(RunChange, waitsForItsTimeOnlyWhileItWaits) {
  auto run = runWith(RunState::Approved);
  run = *changed(run, RunState::Waiting, RunReason::OutsideWindow, RunMover::Executor, "c", {});
  run.waits_until = WallTime{} + std::chrono::hours(3);
  EXPECT_EQ(runFromRecord(recordOf(run))->waits_until, run.waits_until);
  EXPECT_FALSE(isEnd(run.state));
  run = *changed(run, RunState::Approved, RunReason::None, RunMover::Executor, "c", {});
  EXPECT_EQ(run.waits_until, WallTime{});
  EXPECT_FALSE(mayChange(RunState::Waiting, RunState::Running, RunMover::Executor))
      << "it is looked at anew first";
}

}  // namespace
}  // namespace muster::lifecycle
