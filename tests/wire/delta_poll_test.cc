// SPDX-License-Identifier: Apache-2.0
// What an agent leaves out of a poll, and whom it sends such polls to.
#include "wire/delta_poll.h"

#include <gmock/gmock.h>

namespace muster::wire {
namespace {

using ::testing::HasSubstr;

PollRequest reportedPoll() {
  AgentTaskReport done;
  done.id = "t";
  done.phase = TaskPhase::Done;
  done.result = "{}";
  return {Mode::Disk, "boot", "1.0", "digest", {{"kernel", "6"}}, {done}, "{}", "", "s", 7};
}

/// The poll after it, when nothing has happened.
PollRequest nextPoll() {
  auto next = reportedPoll();
  next.sequence = 8;
  next.hardware.clear();
  next.reports[0].result.clear();
  next.wants_answer = false;
  return next;
}

TEST(DeltaPoll, isNotRepeated) {
  DeltaPoll delta;
  EXPECT_EQ(delta.deltaOf(nextPoll()).unchanged_since, 0u) << "nothing was reported";
  delta.acknowledged(reportedPoll(), {.session = "s", .supports_delta = true});
  const auto same = delta.deltaOf(nextPoll());
  EXPECT_EQ(same.unchanged_since, 7u);
  EXPECT_EQ(same.sequence, 8u);
  EXPECT_EQ(same.session, "s");
  delta.forget();
  EXPECT_EQ(delta.deltaOf(nextPoll()).unchanged_since, 0u);
}

TEST(DeltaPoll, whateverIsNewIsReported) {
  DeltaPoll delta;
  delta.acknowledged(reportedPoll(), {.session = "s", .supports_delta = true});
  const auto isReported = [&delta](const std::function<void(PollRequest&)>& change) {
    auto poll = nextPoll();
    change(poll);
    return delta.deltaOf(poll).unchanged_since == 0;
  };
  EXPECT_FALSE(isReported([](PollRequest&) {}));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.session = "another"; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.boot_id = "another"; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.image_digest = "another"; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.probes["kernel"] = "7"; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.hardware = "{}"; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.health = "{}"; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.fresh = true; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.wants_answer = true; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.reports[0].phase = TaskPhase::Failed; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.reports[0].fraction = 0.5; }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.reports[0].text = "half way"; }));
  EXPECT_TRUE(isReported(
      [](PollRequest& poll) { poll.reports[0].reasons.push_back(TaskReason::Restarting); }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.reports.clear(); }));
  EXPECT_TRUE(isReported([](PollRequest& poll) { poll.reports.push_back(poll.reports[0]); }));
}

TEST(DeltaPoll, ofAnOlderAgentIsReadByItsFormerKey) {
  const auto read = parsePollRequest(
      R"({"as_before":6,"boot_id":"boot","mode":"disk","sequence":7,"session":"s"})");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->unchanged_since, 6u);
  EXPECT_FALSE(read->wants_answer);
}

TEST(DeltaPoll, isSupportedOnlyByTheNewKeyOfAnAnswer) {
  const auto older = parsePollResponse(
      R"({"start":[],"forget":[],"session":"s","controllers":"","takes_short":true})");
  ASSERT_TRUE(older) << older.error().str();
  EXPECT_FALSE(older->supports_delta) << "it would not understand `unchanged_since`";
  EXPECT_THAT(toJson(PollResponse{.supports_delta = true}), testing::Not(HasSubstr("takes_short")))
      << "an older agent sends whole polls";
}

TEST(DeltaPoll, isNothingToAControllerThatAsksForEverythingOrIsOlder) {
  DeltaPoll delta;
  delta.acknowledged(reportedPoll(), {.session = "s"});
  EXPECT_EQ(delta.deltaOf(nextPoll()).unchanged_since, 0u) << "it does not know short polls";
  delta.acknowledged(reportedPoll(), {.session = "another", .supports_delta = true});
  EXPECT_EQ(delta.deltaOf(nextPoll()).unchanged_since, 0u)
      << "it has not listened: it is in another life";
}

}  // namespace
}  // namespace muster::wire
