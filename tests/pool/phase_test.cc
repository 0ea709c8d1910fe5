// SPDX-License-Identifier: Apache-2.0
// The pool phase: no certificate, no job; and nobody's drain is undone but our own.
#include "lifecycle/model/pool_hold.h"
#include "lifecycle/model/quarantine.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/pool/context.h"
#include "tests/run_async.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::pool::test {
namespace {

using namespace lifecycle;
using muster::test::runAsync;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A slurmctld of one node: answers scontrol from its state.
class PoolPhaseTest : public ::testing::Test {
 protected:
  PoolPhaseTest() {
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "slurm.conf", "controller's"));
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "node.conf", "the nodes'"));
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "munge.key", key_));
    agents_.boot(NodeName("gpu001"), wire::Mode::Disk);
    agents_.answer(wire::TaskKind::JoinPool, R"({"slurmd": "22.05.8"})");
    processes_.answer = [this](const io::Command& command) { return scontrol(command); };
    phase_ =
        makePoolPhase(cluster_, agents_, certificates_, processes_, clock_,
                      {folder_ / "slurm.conf", folder_ / "node.conf", folder_ / "munge.key", {}});
  }

  Result<io::ProcessExit> scontrol(const io::Command& command) {
    EXPECT_EQ(command.env.at("SLURM_CONF"), (folder_ / "slurm.conf").string());
    if (unreachable_)
      return io::ProcessExit{
          1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)"};
    if (command.program == "squeue" && command.args.at(0) == "--all")
      return io::ProcessExit{0, suspended_ ? "gpu[001-002]\n" : "", ""};
    if (command.args.at(0) == "show") {
      if (state_.empty()) return io::ProcessExit{1, "Node gpu001 not found\n", ""};
      return io::ProcessExit{
          0,
          fmt::format("NodeName=gpu001  CPUAlloc={} State={} SlurmdStartTime={}{}\n", cpus_, state_,
                      slurmd_, reason_.empty() ? "" : " Reason=" + reason_),
          ""};
    }
    if (command.program == "squeue")
      return io::ProcessExit{0, "job 17 of alice, 9:59 left\njob 18 of bob, UNLIMITED left\n", ""};
    auto what = command.args.at(2);
    updates_.push_back(what);
    if (what == "State=RESUME") state_ = after_resume_;
    if (what == "State=DRAIN") state_ += "+DRAIN", reason_ = command.args.at(3).substr(7);
    return io::ProcessExit{};
  }

  Result<Outcome> act(std::string_view to) {
    return runAsync(phase_->act(poolAction("gpu001", to), context_));
  }
  std::string blockedBy(std::string_view to) {
    auto outcome = act(to);
    auto* blocked = outcome ? std::get_if<Blocked>(&*outcome) : nullptr;
    return blocked ? blocked->why : "not blocked";
  }
  std::string observed() {
    auto facts = runAsync(phase_->observe(Subject(NodeName("gpu001"))));
    return !facts ? facts.error().str() : !facts->empty() ? facts->front().value : "nothing";
  }

  muster::test::TempFolder folder_;
  std::string key_ = std::string(128, '\x5a');
  inventory::Cluster cluster_ = poolCluster();
  muster::test::FakeAgentGateway agents_;
  muster::test::FakeProcessRunner processes_;
  Certificates certificates_;
  FakeClock clock_;
  Context context_;
  std::unique_ptr<Phase> phase_;

  bool unreachable_ = false, suspended_ = false;
  std::string state_ = "DOWN", slurmd_ = "None", reason_, after_resume_ = "IDLE+NOT_RESPONDING";
  int cpus_ = 0;
  std::vector<std::string> updates_;
};

TEST_F(PoolPhaseTest, wantsNodesOfAPoolInAfterTheirCertificate) {
  auto goals = phase_->goals(cluster_, Subject(NodeName("gpu001")), {});
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_EQ(goals[0].want, "in");
  EXPECT_TRUE(goals[0].needs.empty());
  EXPECT_THAT(goals[0].after, testing::ElementsAre(lifecycle::Stage::Certificate));
  EXPECT_TRUE(phase_->goals(cluster_, Subject(NodeName("login1")), {}).empty());
  EXPECT_TRUE(phase_->goals(cluster_, Subject::cluster(), {}).empty());
}

TEST_F(PoolPhaseTest, wantsANodeInQuarantineOutWhateverElseIsTrue) {
  FactSet facts;
  facts.put({Subject(NodeName("gpu001")),
             FacetName(std::string(kQuarantineFacet)),
             std::string(kQuarantineHeld),
             {},
             "",
             ""});
  const auto goals = phase_->goals(cluster_, Subject(NodeName("gpu001")), facts);
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_EQ(goals[0].want, "drained");
  EXPECT_THAT(goals[0].why, HasSubstr("muster quarantine remove gpu001"));
  EXPECT_EQ(phase_->goals(cluster_, Subject(NodeName("gpu002")), facts)[0].want, "in");
}

TEST_F(PoolPhaseTest, tellsWhoHasTakenTheNodeOutAndInWhichWords) {
  const Subject node(NodeName("gpu001"));
  const auto hold = [&] {
    FactSet facts;
    for (auto& fact : runAsync(phase_->observe(node)).value_or(std::vector<Fact>()))
      facts.put(std::move(fact));
    return std::pair(poolHoldOf(facts, node), phase_->goals(cluster_, node, facts).at(0).blocked);
  };
  EXPECT_EQ(hold(), std::pair(std::optional<std::string>(), std::string()));
  state_ = "IDLE+DRAIN", reason_ = "dimm swap";
  const auto [words, blocked] = hold();
  EXPECT_EQ(words, "'dimm swap'");
  EXPECT_THAT(blocked, HasSubstr("drained by a person ('dimm swap'); resume it by hand"));
  reason_ = "";
  EXPECT_EQ(hold().first, "no reason given");
  reason_ = "muster: driver nvidia changes";
  EXPECT_EQ(hold().first, std::nullopt) << "its own drain is nobody's word";
}

TEST_F(PoolPhaseTest, doesNothingWithoutACertificate) {
  EXPECT_THAT(blockedBy("in"), HasSubstr("no certificate of gpu001; run the gates"));
  EXPECT_TRUE(agents_.submitted().empty());
  EXPECT_TRUE(updates_.empty());
}

TEST_F(PoolPhaseTest, joinsStepByStepAndAsksTheAgentOnce) {
  certificates_.valid.insert(NodeName("gpu001"));
  auto first = act("in");
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_THAT(std::get<Again>(*first).waiting_for, HasSubstr("slurmd of gpu001 to register"));
  EXPECT_TRUE(updates_.empty()) << "a node whose slurmd nobody has seen is not resumed";
  slurmd_ = "2026-11-20T15:07:00";
  EXPECT_TRUE(std::holds_alternative<Again>(*act("in")));
  EXPECT_EQ(updates_, (std::vector<std::string>{"State=RESUME"}));
  EXPECT_TRUE(std::holds_alternative<Again>(*act("in")));
  EXPECT_EQ(updates_.size(), 1u) << "a silent node comes back by itself";
  state_ = "IDLE";
  EXPECT_TRUE(std::holds_alternative<Done>(*act("in")));
  EXPECT_EQ(observed(), "in");

  ASSERT_EQ(agents_.submitted().size(), 1u);
  const auto& task = agents_.submitted()[0].second;
  EXPECT_EQ(task.id, "intent-1");
  auto params = nlohmann::json::parse(task.params);
  EXPECT_EQ(params["kind"], "slurm");
  EXPECT_EQ(params["conf"], "the nodes'");
  EXPECT_EQ(io::fromBase64(params["munge_key"].get<std::string>()).value(), key_);
  for (const auto& command : processes_.commands)
    EXPECT_THAT(command.str(), Not(HasSubstr(params["munge_key"].get<std::string>())));
}

TEST_F(PoolPhaseTest, leavesANodeAloneThatAPersonDrained) {
  certificates_.valid.insert(NodeName("gpu001"));
  state_ = "IDLE+DRAIN";
  reason_ = "bad fan";
  EXPECT_THAT(blockedBy("in"), HasSubstr("drained by a person (IDLE+DRAIN): 'bad fan'"));
  EXPECT_TRUE(updates_.empty());
  EXPECT_TRUE(agents_.submitted().empty());
}

TEST_F(PoolPhaseTest, leavesANodeAloneThatAPersonSetDown) {
  certificates_.valid.insert(NodeName("gpu001"));
  slurmd_ = "2026-11-20T15:07:00";
  for (const auto* state : {"DOWN", "DOWN+NOT_RESPONDING", "IDLE+FAIL"}) {
    state_ = state;
    reason_ = "GPU 3 is out [alice@2026-11-20T15:08:00]";
    EXPECT_THAT(blockedBy("in"), HasSubstr("drained by a person")) << state;
    EXPECT_EQ(observed(), "drained") << state;
    const auto facts = runAsync(phase_->observe(Subject(NodeName("gpu001"))));
    EXPECT_THAT(facts->front().evidence,
                AllOf(HasSubstr("\"by_person\":true"), HasSubstr("GPU 3 is out")))
        << state;
    EXPECT_TRUE(std::holds_alternative<Done>(*act("drained"))) << "its reason stays theirs";
  }
  EXPECT_TRUE(updates_.empty());
  EXPECT_TRUE(agents_.submitted().empty());
}

TEST_F(PoolPhaseTest, undoesItsOwnDrain) {
  certificates_.valid.insert(NodeName("gpu001"));
  state_ = "IDLE+DRAIN";
  reason_ = "muster: driver nvidia changes";
  slurmd_ = "2026-11-20T15:07:00";
  EXPECT_TRUE(std::holds_alternative<Again>(*act("in")));
  EXPECT_EQ(updates_, (std::vector<std::string>{"State=RESUME"}));
}

TEST_F(PoolPhaseTest, drainWaitsForTheLastJobAndOrdersOnce) {
  state_ = "ALLOCATED";
  cpus_ = 4;
  EXPECT_TRUE(std::holds_alternative<Again>(*act("drained")));
  EXPECT_EQ(reason_, "muster: driver nvidia changes");
  EXPECT_EQ(observed(), "in") << "jobs still run: nothing may disturb the node";
  auto waiting = act("drained");
  EXPECT_THAT(std::get<Again>(*waiting).waiting_for,
              HasSubstr("4 CPUs busy; job 17 of alice, 9:59 left; job 18 of bob, UNLIMITED left"));
  EXPECT_EQ(updates_.size(), 1u);
  state_ = "IDLE+COMPLETING+DRAIN";
  cpus_ = 0;
  EXPECT_TRUE(std::holds_alternative<Again>(*act("drained")));
  state_ = "IDLE+DRAIN";
  EXPECT_TRUE(std::holds_alternative<Done>(*act("drained")));
  EXPECT_EQ(observed(), "drained");
}

TEST_F(PoolPhaseTest, drainWaitsForASuspendedJobToo) {
  state_ = "IDLE+DRAIN";
  suspended_ = true;
  auto waiting = act("drained");
  ASSERT_TRUE(waiting && std::holds_alternative<Again>(*waiting));
  EXPECT_THAT(std::get<Again>(*waiting).waiting_for, HasSubstr("job 17 of alice"));
  EXPECT_EQ(observed(), "in");
  suspended_ = false;
  EXPECT_TRUE(std::holds_alternative<Done>(*act("drained")));
  EXPECT_EQ(observed(), "drained");
}

TEST_F(PoolPhaseTest, atItsDeadlineADrainStaysOrGivesBackAndEndsNoJob) {
  cluster_.pools["batch"].drain.deadline_minutes = 60;
  state_ = "ALLOCATED+DRAIN";
  cpus_ = 4;
  const auto ordered = [this](std::chrono::minutes ago) {
    return "muster: driver nvidia changes [root@" + toString(clock_.now() - ago).substr(0, 19) +
           "]";
  };
  reason_ = ordered(std::chrono::minutes(58));
  EXPECT_TRUE(std::holds_alternative<Again>(*act("drained")));
  reason_ = ordered(std::chrono::minutes(61));
  EXPECT_THAT(blockedBy("drained"), AllOf(HasSubstr("gpu001 is not drained after 60 minutes"),
                                          HasSubstr("job 17 of alice")));
  ASSERT_EQ(context_.found.size(), 1u);
  EXPECT_TRUE(updates_.empty());

  cluster_.pools["batch"].drain.on_timeout = inventory::OnTimeout::Undrain;
  EXPECT_THAT(blockedBy("drained"), HasSubstr("not undrained, because no certificate of gpu001"));
  certificates_.valid.insert(NodeName("gpu001"));
  EXPECT_THAT(blockedBy("drained"), HasSubstr("undrained in pool batch"));
  EXPECT_EQ(updates_, (std::vector<std::string>{"State=RESUME"}));
  state_ = "ALLOCATED+DRAIN";
  reason_ = "bad fan [alice@" + toString(clock_.now() - std::chrono::hours(2)).substr(0, 19) + "]";
  EXPECT_THAT(blockedBy("drained"), HasSubstr("a person drained it"));
  EXPECT_EQ(updates_.size(), 1u);
}

TEST_F(PoolPhaseTest, tellsOutFromDrainedAndUnknownFromOut) {
  EXPECT_EQ(observed(), "out");
  state_ = "IDLE+NOT_RESPONDING";
  EXPECT_EQ(observed(), "silent");
  state_ = "DOWN+DRAIN";
  EXPECT_EQ(observed(), "drained");
  state_ = "";
  EXPECT_EQ(observed(), "out");
  certificates_.valid.insert(NodeName("gpu001"));
  EXPECT_THAT(blockedBy("in"), HasSubstr("does not name node gpu001"));
  unreachable_ = true;
  EXPECT_THAT(observed(), HasSubstr("slurmctld does not answer"));
  for (const auto* to : {"in", "drained"}) {
    const auto outcome = act(to);
    ASSERT_TRUE(outcome && std::holds_alternative<Again>(*outcome)) << to;
    EXPECT_EQ(std::get<Again>(*outcome).after, std::chrono::seconds(15));
    EXPECT_TRUE(std::get<Again>(*outcome).is_away) << "the outage is not the action's own time";
    EXPECT_THAT(std::get<Again>(*outcome).waiting_for, HasSubstr("slurmctld does not answer"));
  }
  EXPECT_TRUE(agents_.submitted().empty());
}

/// It answers the look, and is gone when the order comes.
TEST_F(PoolPhaseTest, anOrderThatSlurmctldDoesNotTakeIsGivenAgain) {
  state_ = "IDLE";
  bool away = true;
  processes_.answer = [&](const io::Command& command) -> Result<io::ProcessExit> {
    if (away && command.args.at(0) == "update")
      return io::ProcessExit{1, "", "Unable to contact slurm controller"};
    return scontrol(command);
  };
  const auto outcome = act("drained");
  ASSERT_TRUE(outcome && std::holds_alternative<Again>(*outcome)) << outcome.error().str();
  EXPECT_THAT(std::get<Again>(*outcome).waiting_for, HasSubstr("Unable to contact"));
  away = false;
  EXPECT_TRUE(std::holds_alternative<Again>(*act("drained")));
  EXPECT_TRUE(std::holds_alternative<Done>(*act("drained")));
  EXPECT_EQ(updates_, (std::vector<std::string>{"State=DRAIN"}));
}

TEST_F(PoolPhaseTest, failsWithTheAgentsWordsWhenSlurmdDoesNotStart) {
  certificates_.valid.insert(NodeName("gpu001"));
  agents_.answer(wire::TaskKind::JoinPool,
                 [](const NodeName&, const wire::AgentTask&) -> Result<std::string> {
                   return fail(ErrorCode::Internal, "slurmd: no such unit");
                 });
  auto outcome = act("in");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("no such unit"));
  EXPECT_TRUE(updates_.empty());
}

}  // namespace
}  // namespace muster::pool::test
