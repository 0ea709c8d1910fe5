// SPDX-License-Identifier: Apache-2.0
// What the controller grants agents where nodes are slow: base/limits.h.
#include "tests/agent/site.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

const NodeName kNode("gpu001");

class SlowNodesTest : public ::testing::Test {
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

TEST_F(SlowNodesTest, aTaskHasAsMuchMoreTimeOnTheNodeToo) {
  const auto report =
      site.await(site.gateway().runTask(kNode, {"w1", wire::TaskKind::WriteImage, "{}", 1s}));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().str(), HasSubstr("did not finish within 3"))
      << "the agent's own words";
}

TEST_F(SlowNodesTest, anAgentMayBeSilentForAsMuchLonger) {
  site.kill(node);
  site.clock.advance(3 * wire::kSilentAfter - 1s);
  EXPECT_TRUE(site.gateway().state(kNode));
  site.clock.advance(2s);
  EXPECT_FALSE(site.gateway().state(kNode));
}

}  // namespace
}  // namespace muster::agent
