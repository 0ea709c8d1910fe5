// SPDX-License-Identifier: Apache-2.0
#include "cli/view/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <sstream>

namespace muster::cli {
namespace {

using lifecycle::Event;
using lifecycle::EventKind;
using lifecycle::Subject;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// What a terminal of these rows shows: just the sequences that the view writes.
std::vector<std::string> shownBy(const std::string& bytes) {
  std::vector<std::string> lines{""};
  std::size_t row = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\n') {
      if (++row == lines.size()) lines.emplace_back();
    } else if (bytes[i] == '\x1b') {
      const auto end = bytes.find_first_of("AJKm", i);
      const auto number = bytes.substr(i + 2, end - i - 2);
      EXPECT_NE(end, std::string::npos);
      if (bytes[end] == 'A') {
        EXPECT_LE(std::stoul(number), row) << "above the block";
        row -= std::min<std::size_t>(row, std::stoul(number));
      }
      if (bytes[end] == 'K') lines[row].clear();
      if (bytes[end] == 'J') lines.resize(row), lines.emplace_back();
      i = end;
    } else if (bytes[i] != '\r') {
      lines[row] += bytes[i];
    }
  }
  return lines;
}

class Progress : public ::testing::Test {
 protected:
  void tell(int node, EventKind kind, const std::string& text = "") {
    const auto name = fmt::format("gpu{:03}", node);
    view_.show(Event{0, {}, kind, Subject(NodeName(name)), name + "/os", text});
  }

  std::ostringstream out_;
  Screen screen_{24, 80, false};
  std::chrono::steady_clock::time_point now_{};
  ProgressView view_{out_, ProgressView::Style::Terminal, [this] { return screen_; },
                     [this] { return now_; }};
};

TEST_F(Progress, theBlockFitsTheScreenAndFailedNodesComeFirst) {
  for (int node = 1; node <= 40; ++node) tell(node, EventKind::ActionWaiting, "for its turn");
  tell(30, EventKind::ActionFailed, "did not start");
  tell(31, EventKind::ActionStarted, "begins");
  view_.finish();
  const auto lines = shownBy(out_.str());
  EXPECT_LT(lines.size(), screen_.rows);
  EXPECT_EQ(lines[0],
            "40 subjects: 1 failed or blocked, 1 running, 38 waiting, 0 between two actions");
  EXPECT_THAT(lines[1], HasSubstr("gpu030"));
  EXPECT_THAT(lines[2], HasSubstr("gpu031"));
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("… and 20 more"));
  for (const auto& line : lines) EXPECT_LT(line.size(), screen_.columns + 3) << line;
}

/// 40 nodes on 24 rows redrew the screen 360 times and wrote 1.4 MB.
TEST_F(Progress, writesLittleHoweverMuchHappens) {
  for (int i = 0; i < 9 * 40; ++i) {
    now_ += std::chrono::milliseconds(250);
    tell(i % 40 + 1, EventKind::ActionProgress, fmt::format("step {}", i / 40));
  }
  view_.finish();
  EXPECT_LT(out_.str().size(), 60'000u);
}

TEST_F(Progress, aBurstIsDrawnAFewTimes) {
  for (int i = 0; i < 10'000; ++i) tell(i % 40 + 1, EventKind::ActionProgress, std::to_string(i));
  view_.finish();
  EXPECT_LT(out_.str().size(), 20'000u);
  EXPECT_THAT(shownBy(out_.str())[0], HasSubstr("40 running")) << "the last state is shown";
}

TEST_F(Progress, coloursOnlyWhereTheyAreWanted) {
  tell(1, EventKind::ActionFailed, "x");
  view_.finish();
  EXPECT_THAT(out_.str(), Not(HasSubstr("\x1b[31m")));
  screen_.colours = true;
  tell(2, EventKind::ActionFailed, "x");
  view_.finish();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\x1b[31m"), HasSubstr("\x1b[0m")));
}

TEST_F(Progress, aTinyScreenIsNoTrouble) {
  screen_ = {1, 1, false};
  for (int node = 1; node <= 5; ++node) tell(node, EventKind::ActionStarted);
  view_.finish();
  EXPECT_LE(shownBy(out_.str()).size(), 4u);
}

TEST(ProgressScreen, noColorIsObeyed) {
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(terminalScreen().colours);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(terminalScreen().colours);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(terminalScreen().colours);
}

TEST(ProgressLines, haveADate) {
  const auto at = parseWallTime("2026-11-25T19:20:05Z");
  ASSERT_TRUE(at);
  EXPECT_EQ(eventLine({0, *at, EventKind::ActionDone, Subject(NodeName("gpu001")), "gpu001/os"}),
            "2026-11-25T19:20:05Z gpu001    os                 " +
                std::string(toString(EventKind::ActionDone)));
}

}  // namespace
}  // namespace muster::cli
