// What Restarts tells others: that a boot which it has begun has come to its end.
#include "provision/restart.h"

#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_netboot.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::provision {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const NodeName kNode("gpu001");

class RestartsTest : public ::testing::Test {
 protected:
  /// Until it no longer waits, or fails.
  Result<void> intoRam() {
    for (int turn = 0; turn < 2000; ++turn) {
      auto step = muster::test::runAsync(restarts.intoRam(kNode, Restarts::Work::None));
      if (!step) return tl::unexpected(step.error());
      if (!*step) return {};
      clock.advance((*step)->after);
    }
    return fail(ErrorCode::Timeout, "it waits for ever");
  }

  FakeClock clock;
  muster::test::FakeBmcFleet fleet;
  muster::test::FakeAgentGateway agents;
  muster::test::FakeNetboot netboot;
  std::vector<std::string> ended;
  Restarts restarts{fleet, agents, netboot, clock, [this](const NodeName& node) { ended.push_back(node.str()); }};
};

TEST_F(RestartsTest, aBootHasEndedWhenItsSystemCalls) {
  fleet.fake(kNode).on_power = [this](bmc::PowerState state) {
    if (state == bmc::PowerState::On) agents.boot(kNode, agent::Mode::Ram, "boot-1");
  };
  ASSERT_TRUE(intoRam());
  EXPECT_THAT(ended, ElementsAre("gpu001"));
  ASSERT_TRUE(intoRam());
  EXPECT_EQ(ended.size(), 1u) << "nothing was started";
}

TEST_F(RestartsTest, aBootHasEndedWhenItIsGivenUpAndTheAdviceNamesItsConsole) {
  const auto failed = intoRam();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::Timeout);
  EXPECT_THAT(failed.error().str(), HasSubstr("`muster console gpu001 --last`"));
  EXPECT_EQ(netboot.armings[kNode], kMaxBoots);
  EXPECT_THAT(netboot.armed, IsEmpty()) << "a start that nobody asked for must not end in the RAM OS";
  EXPECT_THAT(ended, ElementsAre("gpu001"));
}

TEST_F(RestartsTest, aSystemThatRunsAlreadyWasNoBootOfOurs) {
  agents.boot(kNode, agent::Mode::Ram, "boot-0");
  ASSERT_TRUE(intoRam());
  EXPECT_THAT(ended, IsEmpty());
}

}  // namespace
}  // namespace muster::provision
