// SPDX-License-Identifier: Apache-2.0
// What a scheduler's hook is told: by the file alone, and by real agents of a real gateway.
#include "agent/core/fitness.h"

#include "tests/agent/site.h"

#include <gmock/gmock.h>

#include <sys/stat.h>

namespace muster::agent {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class FitnessTest : public ::testing::Test {
 protected:
  FitnessTest() { test::Site::setBoot(root(), "boot-1"); }
  std::filesystem::path root() const { return folder_ / "root"; }
  Fitness fit(std::uint64_t at_ms = 100'000) { return {FitnessState::Fit, "", "boot-1", at_ms}; }
  Fitness read(std::uint64_t now_ms = 100'500) { return readFitness(root(), now_ms); }
  void expectUnknown(const std::string& words) {
    const auto began = std::chrono::steady_clock::now();
    const auto found = read();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
    EXPECT_EQ(found.state, FitnessState::Unknown);
    EXPECT_THAT(found.reason, HasSubstr(words));
  }
  void put(std::string_view text) {
    ASSERT_TRUE(io::makeDirs(root() / "run/muster"));
    ASSERT_TRUE(io::writeFileAtomic(root() / kFitnessFile, text));
  }

  TempFolder folder_;
};

TEST_F(FitnessTest, isReadAsItWasWritten) {
  ASSERT_TRUE(writeFitness(root(), fit()));
  EXPECT_EQ(read(), fit());
  const Fitness unfit{FitnessState::Unfit, "xid.79 at 0000:18:00.0: fallen off", "boot-1", 100'000};
  ASSERT_TRUE(writeFitness(root(), unfit));
  EXPECT_EQ(read(), unfit);
  struct stat status{};
  ASSERT_EQ(::stat((root() / kFitnessFile).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0644u);
}

TEST_F(FitnessTest, anAgentThatIsAwayOrWasThereBeforeThisBootIsSaid) {
  expectUnknown("has not looked");
  ASSERT_TRUE(writeFitness(root(), fit()));
  EXPECT_EQ(read(100'000 + 150'000).state, FitnessState::Fit);
  const auto late = read(100'000 + 151'000);
  EXPECT_EQ(late.state, FitnessState::Unknown);
  EXPECT_THAT(late.reason, HasSubstr("last look is 151 s ago"));
  EXPECT_EQ(read(99'000).state, FitnessState::Fit) << "written a moment after the clock was read";
  test::Site::setBoot(root(), "boot-2");
  expectUnknown("before this boot");
  std::filesystem::remove(root() / "proc/sys/kernel/random/boot_id");
  expectUnknown("before this boot");
}

TEST_F(FitnessTest, whatIsNoFitnessHoldsNobodyUp) {
  for (const auto* text :
       {"", "fit", "[]", "{}", R"({"state": "perfect", "boot_id": "boot-1", "looked_at_ms": 1})",
        R"({"state": "fit", "boot_id": "boot-1"})",
        R"({"state": "fit", "boot_id": "boot-1", "looked_at_ms": -1})"}) {
    put(text);
    expectUnknown("cannot be read");
  }
  put(std::string(1 << 20, ' '));
  expectUnknown("");
  std::filesystem::remove(root() / kFitnessFile);
  ASSERT_EQ(::mkfifo((root() / kFitnessFile).c_str(), 0600), 0);
  expectUnknown("");
  std::filesystem::remove(root() / kFitnessFile);
  ASSERT_TRUE(io::makeDirs(root() / kFitnessFile));
  expectUnknown("");
}

TEST_F(FitnessTest, aReasonIsOneLine) {
  put("{\"state\": \"unfit\", \"reason\": \"a\\nb\\u001b[2J\", \"boot_id\": \"boot-1\", "
      "\"looked_at_ms\": 100000}");
  const auto reason = read().reason;
  EXPECT_EQ(reason.find_first_of("\n\x1b"), std::string::npos) << reason;
}

/// A node evaluates itself by what its controller says, and goes on so without it.
class AgentFitnessTest : public ::testing::Test {
 protected:
  AgentFitnessTest() {
    site_.health = wire::HealthReport{{{"xid.79", "0000:18:00.0", 1, "fallen off", {}}}, {}};
    node_ = site_.startNode(site_.ramOptions("gpu001"));
  }
  Fitness now() { return readFitness(node_->options.root, bootMilliseconds()); }
  void rule(bool takes_out) {
    auto text = toJson(wire::HealthRules{{{"xid.79", "", 1, 0, takes_out}}, false});
    auto digest = wire::digestOfHealthRules(text);
    auto shared = std::make_shared<const gateway::HealthRulesText>(text, digest);
    site_.health_rules = [shared](const NodeName&) { return shared; };
    site_.restartController();
  }
  bool becomes(FitnessState state) {
    return site_.until([&] {
      site_.clock.advance(wire::kPollWait);
      return now().state == state;
    });
  }

  test::Site site_{1};
  std::unique_ptr<test::Node> node_;
};

TEST_F(AgentFitnessTest, followsTheControllersRules) {
  ASSERT_TRUE(site_.until([&] { return site_.isThere("gpu001", wire::Mode::Ram); }));
  EXPECT_EQ(now().state, FitnessState::Unknown);
  EXPECT_THAT(now().reason, HasSubstr("no controller has said"));
  rule(true);
  ASSERT_TRUE(becomes(FitnessState::Unfit)) << now().reason;
  EXPECT_THAT(now().reason, HasSubstr("xid.79 at 0000:18:00.0"));
  rule(false);
  ASSERT_TRUE(becomes(FitnessState::Fit)) << now().reason;
}

/// Rules are some twenty kilobytes: an agent that has them does not get them with every poll.
TEST_F(AgentFitnessTest, rulesAreSentOnce) {
  int sent = 0;
  node_->rewrite = [&](std::string answer) {
    sent += answer.find("takes_out") != std::string::npos ? 1 : 0;
    return answer;
  };
  rule(true);
  ASSERT_TRUE(becomes(FitnessState::Unfit));
  const auto before = node_->said.size();
  ASSERT_TRUE(site_.until([&] {
    site_.clock.advance(wire::kPollWait);
    return node_->said.size() > before + 5;
  }));
  EXPECT_EQ(sent, 1);
}

TEST_F(AgentFitnessTest, aRestartedAgentKnowsThemWithoutAController) {
  rule(true);
  ASSERT_TRUE(becomes(FitnessState::Unfit));
  auto options = node_->options;
  site_.kill(node_);
  std::filesystem::remove(options.root / kFitnessFile);
  site_.controller.reset();
  site_.controller.emplace();  // nobody listens
  node_ = site_.startNode(options);
  ASSERT_TRUE(becomes(FitnessState::Unfit)) << now().reason;
}

TEST_F(AgentFitnessTest, rulesThatCannotBeReadAreSaidAndNotAskedForAgain) {
  auto shared = std::make_shared<const gateway::HealthRulesText>("{\"rules\": 7}", "0123");
  site_.health_rules = [shared](const NodeName&) { return shared; };
  site_.restartController();
  ASSERT_TRUE(site_.until([&] {
    site_.clock.advance(wire::kPollWait);
    return now().reason.find("cannot be read by this agent") != std::string::npos;
  })) << now().reason;
}

}  // namespace
}  // namespace muster::agent
