// The fake keeps the seam's promises that other folders' tests lean on.
#include "tests/fakes/fake_agent_gateway.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>

using namespace muster;
using namespace muster::agent;
using muster::test::FakeAgentGateway;

TEST(FakeAgentGateway, sameIdIsStartedOnce) {
  FakeAgentGateway agents;
  NodeName node("gpu001");
  EXPECT_EQ(agents.submit(node, AgentTask{"t1", TaskKind::Probe, "{}"}).error().code(), ErrorCode::Unavailable);
  agents.boot(node, Mode::Disk);
  agents.answer(TaskKind::Probe, R"({"kernel":"6.1"})");
  ASSERT_TRUE(agents.submit(node, AgentTask{"t1", TaskKind::Probe, "{}"}));
  ASSERT_TRUE(agents.submit(node, AgentTask{"t1", TaskKind::Probe, "{}"}));
  EXPECT_EQ(agents.submitted().size(), 1u);
  EXPECT_EQ(agents.report(node, "t1")->result, R"({"kernel":"6.1"})");
}

TEST(FakeAgentGateway, runTaskWaitsForAHeldTask) {
  asio::io_context context;
  FakeAgentGateway agents;
  NodeName node("gpu001");
  agents.boot(node, Mode::Ram);
  agents.hold(TaskKind::WriteImage);
  std::optional<Result<AgentTaskReport>> outcome;
  asio::co_spawn(context, agents.runTask(node, AgentTask{"w", TaskKind::WriteImage, "{}"}),
                 [&](std::exception_ptr, Result<AgentTaskReport> answer) { outcome = std::move(answer); });
  context.poll();
  EXPECT_FALSE(outcome);
  agents.finish("w", "{}");
  context.restart();
  context.poll();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->has_value());
}
