// SPDX-License-Identifier: Apache-2.0
// The fake keeps the seam's promises that other folders' tests lean on.
#include "tests/fakes/fake_agent_gateway.h"

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

using namespace muster;
using muster::test::FakeAgentGateway;

TEST(FakeAgentGateway, sameIdIsStartedOnce) {
  FakeAgentGateway agents;
  NodeName node("gpu001");
  EXPECT_EQ(agents.submit(node, wire::AgentTask{"t1", wire::TaskKind::Probe, "{}"}).error().code(),
            ErrorCode::Unavailable);
  agents.boot(node, wire::Mode::Disk);
  agents.answer(wire::TaskKind::Probe, R"({"kernel":"6.1"})");
  ASSERT_TRUE(agents.submit(node, wire::AgentTask{"t1", wire::TaskKind::Probe, "{}"}));
  ASSERT_TRUE(agents.submit(node, wire::AgentTask{"t1", wire::TaskKind::Probe, "{}"}));
  EXPECT_EQ(agents.submitted().size(), 1u);
  EXPECT_EQ(agents.report(node, "t1")->result, R"({"kernel":"6.1"})");
}

TEST(FakeAgentGateway, runTaskWaitsForAHeldTask) {
  asio::io_context context;
  FakeAgentGateway agents;
  NodeName node("gpu001");
  agents.boot(node, wire::Mode::Ram);
  agents.hold(wire::TaskKind::WriteImage);
  std::optional<Result<wire::AgentTaskReport>> outcome;
  asio::co_spawn(context,
                 agents.runTask(node, wire::AgentTask{"w", wire::TaskKind::WriteImage, "{}"}),
                 [&](std::exception_ptr, Result<wire::AgentTaskReport> answer) {
                   outcome = std::move(answer);
                 });
  context.poll();
  EXPECT_FALSE(outcome);
  agents.finish("w", "{}");
  context.restart();
  context.poll();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->has_value());
}
