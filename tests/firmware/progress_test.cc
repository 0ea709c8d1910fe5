// SPDX-License-Identifier: Apache-2.0
// The journaled operation of an update is read as it was written.
#include "firmware/progress.h"

#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

TEST(FirmwareProgress, isReadAsItWasWritten) {
  const auto when = *parseWallTime("2026-11-20T14:03:11.000Z");
  const std::vector<Progress> all = {
      {},
      {.step = InstallStep::Next, .staged = {{"System ROM", "U54 2.1"}, {"A%20", "1"}}},
      {.step = InstallStep::Copy,
       .staged = {{"A", "1"}},
       .waits = {"/t/1", "/t/2"},
       .restarted = "NIC 5",
       .since = when},
      {.step = InstallStep::Upload,
       .staged = {{"A", "1"}},
       .current = {"B", "2"},
       .with = {{"C D", "2"}, {"E", "3"}},
       .uploads_tried = 2,
       .tasks_before = {"/t/1", "/t/2"}},
      {.step = InstallStep::Follow, .current = {"B C", "2"}, .task = "/t/3#verify"},
      {.step = InstallStep::Follow, .staged = {{"A", "1"}}, .task = "/t/4", .since = when},
      {.step = InstallStep::Follow,
       .current = {"ConnectX 7", "28.39"},
       .task = "agent:i/ConnectX 7=28.39",
       .waits = {"agent:i/A B=1"},
       .since = when},
      {.step = InstallStep::Upload,
       .current = {"B", "2"},
       .uploads_tried = 1,
       .tasks_before = {"agent:i/A B=1", "/t/50%"},
       .since = when},
      {.step = InstallStep::Stabilize,
       .staged = {{"A", "1"}},
       .starting = std::set<std::string>{},
       .since = when},
      {.step = InstallStep::Stabilize,
       .staged = {{"A", "1"}},
       .starting = std::set<std::string>{"NIC 1", "NIC 2"},
       .since = when},
      {.step = InstallStep::Lost, .staged = {{"A", "1"}}, .current = {"B C", "2"}, .since = when},
      {.step = InstallStep::AcCut, .staged = {{"A", "1"}}, .since = when},
      {.step = InstallStep::Copy, .staged = {{"A=B", "1"}}, .since = when},
      {.step = InstallStep::Copy,
       .staged = {{"A", "1"}},
       .failed = Failure{{"B C", "2"}, "100 % wrong\nhere", true},
       .since = when},
      {.step = InstallStep::Over,
       .staged = {{"A", "1"}},
       .failed = Failure{{"B", "2"}, "no licence", false}},
      {.step = InstallStep::Stabilize, .since = when}};
  for (const auto& progress : all) {
    const auto read = Progress::parse(progress.str());
    ASSERT_TRUE(read) << progress.str();
    EXPECT_EQ(read->str(), progress.str());
    EXPECT_EQ(read->staged, progress.staged);
    EXPECT_EQ(read->current, progress.current);
    EXPECT_EQ(read->with, progress.with);
    EXPECT_EQ(read->waits, progress.waits);
    EXPECT_EQ(read->restarted, progress.restarted);
    EXPECT_EQ(read->starting, progress.starting);
    EXPECT_EQ(read->task, progress.task);
    EXPECT_EQ(read->tasks_before, progress.tasks_before);
    EXPECT_EQ(read->since, progress.since);
    ASSERT_EQ(read->failed.has_value(), progress.failed.has_value());
    if (!read->failed) continue;
    EXPECT_EQ(read->failed->target, progress.failed->target);
    EXPECT_EQ(read->failed->written, progress.failed->written);
  }
  for (const char* odd :
       {"flash", "+A", "+A=1", "for:=1 task /t", "task", "upload x -", "+A=1 next more",
        "activate yesterday", "over", "because:x over", "failed:A over"})
    EXPECT_FALSE(Progress::parse(odd)) << odd;
}

}  // namespace
}  // namespace muster::firmware
