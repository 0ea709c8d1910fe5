// SPDX-License-Identifier: Apache-2.0
// What the controller grants agents where nodes are slow: base/limits.h.
#include "agent/core/agent_clock.h"
#include "tests/agent/site.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

class AgentClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    site.place.set(3);
    node = site.startNode(site.ramOptions("gpu001"));
    ASSERT_TRUE(site.until([this] { return site.gateway().state(kNode).has_value(); }));
  }
  void TearDown() override {
    if (node) site.kill(node);
  }
  Site site;
  std::unique_ptr<Node> node;
};

TEST_F(AgentClockTest, aTaskHasAsMuchMoreTimeOnTheNodeToo) {
  const auto report =
      site.await(site.gateway().runTask(kNode, {"w1", wire::TaskKind::WriteImage, "{}", 1s}));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().str(), HasSubstr("did not finish within 3"))
      << "the agent's own words";
}

TEST_F(AgentClockTest, anAgentMayBeSilentForAsMuchLonger) {
  site.kill(node);
  site.clock.advance(3 * wire::kAgentTimeout - 1s);
  EXPECT_TRUE(site.gateway().state(kNode));
  site.clock.advance(2s);
  EXPECT_FALSE(site.gateway().state(kNode));
}

/// Answers with one header, or without any.
class SayingClient final : public io::HttpClient {
 public:
  Async<io::HttpResponse> send(io::HttpRequest) override {
    io::HttpResponse answer;
    answer.status = status;
    if (!says.empty()) answer.headers["muster-slowness"] = says;
    co_return answer;
  }
  Async<io::HttpResponse> fetch(io::HttpRequest,
                                std::function<Result<void>(std::string_view)>) override {
    co_return io::HttpResponse();
  }
  std::string peerFingerprint() const override { return ""; }
  std::string says;
  int status = 200;
};

TEST(AgentClock, limitsOfAnAgentFollowWhatTheLastGoodAnswerSaid) {
  AgentClock clock;
  auto saying = std::make_unique<SayingClient>();
  auto* controller = saying.get();
  const auto client = heedSlowness(std::move(saying), clock);
  const auto told = [&](std::string says, int status = 200) {
    controller->says = std::move(says), controller->status = status;
    EXPECT_TRUE(runAsync(client->send({})));
    return clock.slowness();
  };
  EXPECT_EQ(told(""), 1);
  EXPECT_EQ(told("5"), 5);
  EXPECT_EQ(limitHere(clock, 30s), 150s);
  EXPECT_EQ(told("", 503), 5) << "an error says nothing";
  EXPECT_EQ(told("1.5"), 1.5);
  for (const char* odd : {"0.1", "-3", "nan", "five", "1e-300"}) EXPECT_EQ(told(odd), 1) << odd;
  EXPECT_EQ(told("1e9"), 20) << "bounded";
  EXPECT_EQ(told(""), 1) << "a controller of metal";
}

TEST_F(AgentClockTest, theControllerTellsItsAgents) {
  // Each task comes with the answer to a poll.
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, {"p0", wire::TaskKind::Probe, "{}", 60s})));
  EXPECT_EQ(node->clock.slowness(), 3);
  site.place.set(1);
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, {"p1", wire::TaskKind::Probe, "{}", 60s})));
  EXPECT_EQ(node->clock.slowness(), 1) << "nothing is sent where nothing is slow";
}

}  // namespace
}  // namespace muster::agent
