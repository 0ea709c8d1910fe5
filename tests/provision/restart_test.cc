// SPDX-License-Identifier: Apache-2.0
// What Restarts tells others: that a boot which it has begun has come to its end.
#include "provision/restart.h"

#include "gateway/refused_agents.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_netboot.h"
#include "tests/fakes/memory_store.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"
#include "tests/slowed_clock.h"

#include <gmock/gmock.h>

namespace muster::provision {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The node's installed system calls, and is not listened to.
class RefusingGateway final : public gateway::AgentGateway, public gateway::RefusedAgents {
 public:
  bool isRefused(const NodeName&) const override { return true; }
  std::optional<gateway::AgentState> state(const NodeName&) const override { return std::nullopt; }
  Async<gateway::AgentState> waitFor(NodeName, std::optional<wire::Mode>, std::string,
                                     std::chrono::seconds) override {
    co_return nobody();
  }
  Result<void> submit(const NodeName&, wire::AgentTask) override { return nobody(); }
  std::optional<wire::AgentTaskReport> report(const NodeName&, const std::string&) const override {
    return std::nullopt;
  }
  Task<std::optional<wire::AgentTaskReport>> reportWithin(NodeName, std::string,
                                                          std::chrono::milliseconds) override {
    co_return std::nullopt;
  }
  void abandon(const NodeName&, const std::string&) override {}
  Async<wire::AgentTaskReport> runTask(NodeName, wire::AgentTask) override { co_return nobody(); }

 private:
  static std::unexpected<Error> nobody() {
    return fail(ErrorCode::Unavailable, "no agent is there");
  }
};

class RestartsTest : public ::testing::Test {
 protected:
  /// Until it no longer waits, or fails.
  Result<void> intoRam() {
    for (int turn = 0; turn < 2000; ++turn) {
      auto step = muster::test::runAsync(restarts.intoRam(kNode, Restarts::Work::None));
      if (!step) return std::unexpected(step.error());
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
  Restarts restarts{fleet, agents, netboot, clock,
                    [this](const NodeName& node) { ended.push_back(node.str()); }};
};

TEST_F(RestartsTest, aBootHasEndedWhenItsSystemCalls) {
  fleet.fake(kNode).on_power = [this](bmc::PowerState state) {
    if (state == bmc::PowerState::On) agents.boot(kNode, wire::Mode::Ram, "boot-1");
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
  EXPECT_THAT(netboot.armed, IsEmpty())
      << "a start that nobody asked for must not end in the RAM OS";
  EXPECT_THAT(ended, ElementsAre("gpu001"));
}

TEST_F(RestartsTest, aSystemThatRunsAlreadyWasNoBootOfOurs) {
  agents.boot(kNode, wire::Mode::Ram, "boot-0");
  ASSERT_TRUE(intoRam());
  EXPECT_THAT(ended, IsEmpty());
}

TEST_F(RestartsTest, aBootInASlowPlaceHasAsMuchMoreTime) {
  muster::test::SlowedClock place(clock, 5);
  Restarts patient{fleet, agents, netboot, place, [](const NodeName&) {}};
  const auto began = clock.steady();
  std::string waits_for;
  for (int turn = 0; turn < 20000; ++turn) {
    const auto step = muster::test::runAsync(patient.intoRam(kNode, Restarts::Work::None));
    ASSERT_TRUE(step)
        << step.error().str() << " after "
        << std::chrono::duration_cast<std::chrono::seconds>(clock.steady() - began).count() << " s";
    if (!*step) break;
    waits_for = (*step)->waiting_for;
    clock.advance((*step)->after);
    if (clock.steady() - began > 4 * kBootLimit && !agents.state(kNode))
      agents.boot(kNode, wire::Mode::Ram, "boot-1");
  }
  EXPECT_TRUE(agents.state(kNode)) << "it was waited for";
  EXPECT_EQ(netboot.armings[kNode], 1) << "a slow boot is no failed one";
  EXPECT_EQ(waits_for,
            "the RAM OS of gpu001 to report within 3000 s (600 s on an idle machine; this one is 5 "
            "times slower)");
}

TEST_F(RestartsTest, aGuessThatARamOsRunsIsNoLongerInASlowPlace) {
  muster::test::SlowedClock place(clock, 5);
  Restarts patient{fleet, agents, netboot, place, [](const NodeName&) {}};
  ASSERT_TRUE(muster::test::runAsync(fleet.fake(kNode).power(bmc::PowerAction::On)));  // and silent
  const auto began = clock.steady();
  for (int turn = 0; turn < 2000 && netboot.armings[kNode] == 0; ++turn) {
    const auto step = muster::test::runAsync(patient.intoRam(kNode, Restarts::Work::None));
    ASSERT_TRUE(step && *step);
    clock.advance((*step)->after);
  }
  EXPECT_LT(clock.steady() - began, 2 * kRamCallBack);
}

/// Six restarts of muster were six boots for one inspection.
TEST_F(RestartsTest, aMusterThatStartsWaitsForTheBootThatItFindsUnderWay) {
  muster::test::MemoryStore store;
  const auto log = makeBootLog(store);
  fleet.fake(kNode).on_power = nullptr;  // it takes its time
  for (int muster = 0; muster < 6; ++muster) {
    Restarts anew{fleet, agents, netboot, clock, [](const NodeName&) {}, log.get()};
    for (int turn = 0; turn < 30; ++turn) {
      const auto step = muster::test::runAsync(anew.intoRam(kNode, Restarts::Work::None));
      ASSERT_TRUE(step && *step);
      clock.advance((*step)->after);
    }
  }
  EXPECT_EQ(netboot.armings[kNode], 1);
  agents.boot(kNode, wire::Mode::Ram, "boot-1");
  Restarts last{fleet, agents, netboot, clock, [](const NodeName&) {}, log.get()};
  const auto step = muster::test::runAsync(last.intoRam(kNode, Restarts::Work::None));
  ASSERT_TRUE(step);
  EXPECT_FALSE(*step) << "it is there";
  EXPECT_FALSE(*log->underWay(kNode)) << "and no boot is under way";
}

TEST_F(RestartsTest, aBootThatIsFoundGetsNoMoreTimeThanItsOwn) {
  muster::test::MemoryStore store;
  const auto log = makeBootLog(store);
  ASSERT_TRUE(muster::test::runAsync(fleet.fake(kNode).power(bmc::PowerAction::On)));  // and silent
  ASSERT_TRUE(log->began(kNode, {wire::Mode::Disk, clock.now() - std::chrono::seconds(400)}));
  Restarts anew{fleet, agents, netboot, clock, [](const NodeName&) {}, log.get()};
  const auto began = clock.steady();
  for (int turn = 0; turn < 2000 && netboot.armings[kNode] == 0; ++turn) {
    const auto step = muster::test::runAsync(anew.intoRam(kNode, Restarts::Work::None));
    ASSERT_TRUE(step && *step);
    clock.advance((*step)->after);
  }
  EXPECT_GT(clock.steady() - began, std::chrono::seconds(190));
  EXPECT_LT(clock.steady() - began, std::chrono::seconds(220));
}

TEST_F(RestartsTest, aMachineThatIsOffIsStartedWhateverTheLogSays) {
  muster::test::MemoryStore store;
  const auto log = makeBootLog(store);
  ASSERT_TRUE(log->began(kNode, {wire::Mode::Ram, clock.now()}));
  Restarts anew{fleet, agents, netboot, clock, [](const NodeName&) {}, log.get()};
  ASSERT_TRUE(muster::test::runAsync(anew.intoRam(kNode, Restarts::Work::None)));
  EXPECT_EQ(netboot.armings[kNode], 1);
}

TEST_F(RestartsTest, aDamagedBootLogIsSaid) {
  muster::test::MemoryStore store;
  ASSERT_TRUE(store.putValue("boot.gpu001", "sideways 2026"));
  const auto log = makeBootLog(store);
  EXPECT_EQ(log->underWay(kNode).error().code(), ErrorCode::Corrupt);
}

TEST_F(RestartsTest, aSystemThatCallsWithARefusedKeyKeepsItsPower) {
  RefusingGateway refusing;
  Restarts careful{fleet, refusing, netboot, clock, [](const NodeName&) {}};
  Result<std::optional<lifecycle::Again>> step = std::nullopt;
  for (int turn = 0; turn < 2000 && step; ++turn) {
    step = muster::test::runAsync(careful.intoDisk(kNode, Restarts::Work::None));
    if (step && *step) clock.advance((*step)->after);
  }
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code(), ErrorCode::Denied);
  EXPECT_THAT(step.error().str(), HasSubstr("muster bmc forget-key gpu001"));
  EXPECT_THAT(fleet.fake(kNode).calls, ::testing::Not(::testing::Contains(HasSubstr("power"))));
}

}  // namespace
}  // namespace muster::provision
