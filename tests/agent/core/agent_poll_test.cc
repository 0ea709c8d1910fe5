// SPDX-License-Identifier: Apache-2.0
// Polls as a confused network might deliver them, and those of agents of other versions.
#include "tests/agent/site.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

class PollTest : public ::testing::Test {
 protected:
  wire::PollRequest busyPoll(const std::string& boot, std::uint64_t sequence,
                             std::vector<wire::AgentTaskReport> reports) {
    wire::PollRequest poll;
    poll.mode = wire::Mode::Disk;
    poll.boot_id = boot;
    poll.sequence = sequence;
    poll.reports = std::move(reports);
    wire::AgentTaskReport busy;
    busy.id = "other";
    busy.phase = wire::TaskPhase::Running;  // so that the answer comes at once
    poll.reports.push_back(busy);
    return poll;
  }
  static wire::AgentTaskReport report(std::string id, wire::TaskPhase phase,
                                      std::string result = {}) {
    wire::AgentTaskReport each;
    each.id = std::move(id);
    each.phase = phase;
    each.result = std::move(result);
    return each;
  }
  int send(const wire::PollRequest& poll) {
    auto answer = site.post("/agent/v1/poll", toJson(poll), identity);
    return answer ? answer->status : -1;
  }
  Site site;
  io::TlsIdentity identity = site.identityOf("gpu001");
};

TEST_F(PollTest, lateAndRepeatedReportsAreNotBelieved) {
  EXPECT_EQ(send(busyPoll("b1", 10, {report("t", wire::TaskPhase::Running)})), 200);
  EXPECT_EQ(send(busyPoll("b1", 12, {report("t", wire::TaskPhase::Done, "{}")})), 200);
  EXPECT_EQ(send(busyPoll("b1", 11, {report("t", wire::TaskPhase::Running)})), 409);
  EXPECT_EQ(send(busyPoll("b1", 12, {report("t", wire::TaskPhase::Running)})), 409);
  EXPECT_EQ(site.phase("gpu001", "t"), wire::TaskPhase::Done);
  EXPECT_EQ(send(busyPoll("b2", 1, {})), 200);
  EXPECT_EQ(send(busyPoll("b1", 99, {report("t", wire::TaskPhase::Done, "{}")})), 409)
      << "that boot is over";
  EXPECT_EQ(site.gateway().state(kNode)->boot_id, "b2");
}

/// A machine is reset just after its agent's first poll, and that poll takes longer than the next
/// boot.
TEST_F(PollTest, aFirstPollThatArrivesAfterTheNextBootsLocksNobodyOut) {
  EXPECT_EQ(send(busyPoll("b2", 1, {})), 200);
  EXPECT_EQ(send(busyPoll("b1", 1, {})), 200) << "nobody can know that it is late";
  EXPECT_EQ(send(busyPoll("b2", 1, {})), 409) << "a repetition says nothing";
  EXPECT_EQ(send(busyPoll("b2", 2, {})), 409);
  EXPECT_EQ(send(busyPoll("b2", 3, {})), 409);
  EXPECT_EQ(send(busyPoll("b2", 4, {})), 200) << "who goes on calling is there";
  EXPECT_EQ(site.gateway().state(kNode)->boot_id, "b2");
  EXPECT_EQ(send(busyPoll("b1", 2, {})), 409) << "and the other is over";
}

TEST_F(PollTest, aBootThatIsHeardKeepsItsPlace) {
  EXPECT_EQ(send(busyPoll("b1", 1, {})), 200);
  EXPECT_EQ(send(busyPoll("b2", 1, {})), 200);
  for (std::uint64_t sequence = 2; sequence < 8; ++sequence) {
    EXPECT_EQ(send(busyPoll("b1", sequence, {})), 409);
    EXPECT_EQ(send(busyPoll("b2", sequence, {})), 200);
  }
}

TEST_F(PollTest, acknowledgedResultMayBeLeftOutButNotInvented) {
  EXPECT_EQ(send(busyPoll("b1", 1, {report("t", wire::TaskPhase::Done, R"({"x":1})")})), 200);
  EXPECT_EQ(send(busyPoll("b1", 2, {report("t", wire::TaskPhase::Done)})), 200);
  EXPECT_EQ(site.gateway().report(kNode, "t")->result, R"({"x":1})");
  EXPECT_EQ(send(busyPoll("b1", 3, {report("u", wire::TaskPhase::Done)})), 400);
}

TEST_F(PollTest, whatAShortPollLeavesOutMustBeKnown) {
  const auto say = [&](const wire::PollRequest& poll) {
    return *wire::parsePollResponse(site.post("/agent/v1/poll", toJson(poll), identity)->body);
  };
  auto first = say(busyPoll("b1", 1, {report("t", wire::TaskPhase::Done, R"({"x":1})")}));
  EXPECT_TRUE(first.supports_delta);
  auto same = busyPoll("b1", 2, {});
  same.session = first.session;
  same.unchanged_since = 1;
  site.clock.advance(5s);
  EXPECT_EQ(say(same).session, first.session);
  EXPECT_EQ(site.gateway().report(kNode, "t")->result, R"({"x":1})");
  EXPECT_EQ(site.phase("gpu001", "other"), wire::TaskPhase::Running);
  EXPECT_EQ(site.gateway().state(kNode)->last_seen, site.clock.now());

  same.sequence = 3;
  EXPECT_EQ(say(same).session, "") << "the last that was heard is 2: everything is to be said";
  same.unchanged_since = 2;
  same.boot_id = "b2";
  EXPECT_EQ(say(same).session, "");
  EXPECT_EQ(site.gateway().state(kNode)->boot_id, "b1") << "and nothing of it was believed";
  same.boot_id = "b1";
  EXPECT_EQ(say(same).session, first.session);
  site.restartController();
  same.sequence = 4;
  same.unchanged_since = 3;
  const auto later = say(same);
  EXPECT_NE(later.session, first.session);
  EXPECT_FALSE(site.gateway().state(kNode)) << "another life knows nothing";
}

TEST_F(PollTest, anOlderAgentIsUnderstoodAndSendsWholePollsFromThenOn) {
  const auto post = [&](const std::string& body) {
    return site.post("/agent/v1/poll", body, identity)->body;
  };
  const auto first = *wire::parsePollResponse(
      post(toJson(busyPoll("b1", 1, {report("t", wire::TaskPhase::Done, R"({"x":1})")}))));
  auto same = busyPoll("b1", 2, {});
  same.session = first.session;
  same.unchanged_since = 1;
  auto text = toJson(same);
  text.replace(text.find("unchanged_since"), std::string_view("unchanged_since").size(),
               "as_before");  // by the key of before, to the controller that was upgraded meanwhile
  const auto answer = post(text);
  EXPECT_EQ(wire::parsePollResponse(answer)->session, first.session);
  EXPECT_EQ(site.gateway().report(kNode, "t")->result, R"({"x":1})");
  EXPECT_EQ(answer.find("takes_short"), std::string::npos) << "so it sends no more of these";
}

TEST_F(PollTest, answerOfALostResponseIsGivenAgain) {
  EXPECT_EQ(send(busyPoll("b1", 1, {})), 200);
  ASSERT_TRUE(site.gateway().submit(kNode, task("t", wire::TaskKind::Probe)));
  for (std::uint64_t sequence : {2, 3}) {
    auto answer = site.post("/agent/v1/poll", toJson(busyPoll("b1", sequence, {})), identity);
    auto parsed = wire::parsePollResponse(answer->body);
    ASSERT_TRUE(parsed);
    ASSERT_EQ(parsed->start.size(), 1u);
    EXPECT_EQ(parsed->start[0].id, "t");
  }
  auto taken =
      site.post("/agent/v1/poll", toJson(busyPoll("b1", 4, {report("t", wire::TaskPhase::Queued)})),
                identity);
  EXPECT_TRUE(wire::parsePollResponse(taken->body)->start.empty());
}

}  // namespace
}  // namespace muster::agent
