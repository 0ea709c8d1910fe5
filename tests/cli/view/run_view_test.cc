// SPDX-License-Identifier: Apache-2.0
#include "cli/view/run_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using lifecycle::RunReason;
using lifecycle::RunState;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

lifecycle::Run runIn(RunState state) {
  lifecycle::Run run;
  run.id = "r-1f2e3d4c5b6a";
  run.state = state;
  run.asked_by = {"anna", "local", "ctl1"};
  run.plan_hash = "0123456789abcdef";
  run.apply.nodes = "gpu[001-008]";
  return run;
}

TEST(RunView, endsAsApplyDoes) {
  EXPECT_EQ(exitCodeOf(RunState::Done), kOk);
  EXPECT_EQ(exitCodeOf(RunState::Failed), kFailed);
  EXPECT_EQ(exitCodeOf(RunState::Outdated), kFailed);
  for (const auto state : {RunState::WorkLeft, RunState::Cancelled, RunState::Waiting})
    EXPECT_EQ(exitCodeOf(state), kWorkLeft);
}

TEST(RunView, saysWhoOrWhatItWaitsFor) {
  auto run = runIn(RunState::NeedsApproval);
  run.apply.confirm = true;
  EXPECT_THAT(runWaitsText(run), HasSubstr("until anna confirms plan 0123456789ab:"));
  run.approvals_needed = 2;
  run.approvals = {{{"ben", "token", ""}, {}, run.plan_hash, false}};
  EXPECT_THAT(runWaitsText(run), HasSubstr("waits for 1 more to agree"));
  run = runIn(RunState::Waiting);
  run.waits_until = WallTime{std::chrono::hours(24 * 20'000)};
  run.text = "the next maintenance window of batch opens then";
  EXPECT_THAT(runWaitsText(run), AllOf(HasSubstr("waits until 2024-10-04T00:00:00"),
                                       HasSubstr("of batch"), HasSubstr("muster run override r-")));
  EXPECT_THAT(runWaitsText(runIn(RunState::Running)), IsEmpty());
  EXPECT_THAT(runWaitsText(runIn(RunState::Done)), IsEmpty());
}

TEST(RunView, anOverrideIsShownUntilAndAfterItIsAcknowledged) {
  auto run = runIn(RunState::Done);
  run.overrides = {{{"root", "local", "ctl1"}, {}, "h", RunReason::OutsideWindow, "fire", "", {}}};
  EXPECT_THAT(runText(run), AllOf(HasSubstr("OVERRIDDEN by"), HasSubstr("outside-window: fire"),
                                  HasSubstr("muster run acknowledge r-1f2e3d4c5b6a")));
  run.overrides[0].acknowledged_by = "anna";
  EXPECT_THAT(runText(run), AllOf(HasSubstr("acknowledged by anna"), Not(HasSubstr("nobody has"))));
}

/// What others have written cannot move the cursor.
TEST(RunView, foreignTextIsPrintable) {
  auto run = runIn(RunState::Failed);
  run.text = "bad \x1b[2J";
  run.apply.command = "muster \x1b]0;x\x07";
  run.problems = {"gpu001: \x1b[31m"};
  run.asked_by.principal = "an\x1bna";
  run.overrides = {{{"ro\x1bot", "local", ""}, {}, "h", RunReason::None, "\x1b", "\x1b", {}}};
  for (const auto& text : {runText(run), runEndText(run), runTable({run})})
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

TEST(RunView, aRunThatCannotBeReadSaysWhy) {
  auto run = runIn(RunState::Paused);
  run.unreadable = "a newer muster has written it";
  EXPECT_THAT(runText(run), AllOf(HasSubstr("unreadable"), HasSubstr("a newer muster")));
  EXPECT_THAT(runTable({run}), HasSubstr("unreadable"));
  EXPECT_EQ(runTable({}), "there are no runs\n");
}

}  // namespace
}  // namespace muster::cli
