// SPDX-License-Identifier: Apache-2.0
// Real munged, slurmctld and slurmd in a network namespace of the test's own; the agent is a fake
// whose JoinPool starts slurmd.
#include "base/async/await_all.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/real_slurm.h"
#include "tests/paths.h"
#include "tests/pool/context.h"

#include "inventory/model/cluster.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/model/pool_hold.h"
#include "pool/scontrol.h"
#include "tests/fakes/fake_phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <thread>

namespace muster::pool::test {
namespace {

using namespace lifecycle;
using muster::test::runAsync;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SlurmSystem : public muster::test::RealSlurm {
 protected:
  void SetUp() override {
    RealSlurm::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto conf =
        slurmConf(fmt::format("SlurmdTimeout={1}\nNodeName=gpu001 NodeHostname={0} "
                              "NodeAddr=10.99.0.1 Port=17001 CPUs=1 State=DOWN\n"
                              "NodeName=gpu002 NodeHostname={0} NodeAddr=10.99.0.1 Port=17002 "
                              "CPUs=1 State=DOWN Reason=new\n"
                              "PartitionName=gpu Nodes=gpu[001-002] Default=YES State=UP\n",
                              kHost, slurmd_timeout_s_));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "node.conf",
                                    conf + "# for the nodes\nDebugFlags=NO_CONF_HASH\n"));
    startController(conf);
    agents_.boot(NodeName("gpu001"), wire::Mode::Disk);
    agents_.answer(wire::TaskKind::JoinPool,
                   [this](const NodeName& node, const wire::AgentTask& task) {
                     return startSlurmd(node, task);
                   });
    phase_ =
        makePoolPhase(cluster_, agents_, certificates_, *processes_, clock_,
                      {folder_ / "slurm.conf", folder_ / "node.conf", folder_ / "munge.key", {}});
  }

  Result<std::string> startSlurmd(const NodeName& node, const wire::AgentTask& task) {
    auto params = nlohmann::json::parse(task.params);
    auto conf = folder_ / (node.str() + ".conf");
    TRY_OK(io::writeFileAtomic(conf, params["conf"].get<std::string>()));
    TRY(key, io::fromBase64(params["munge_key"].get<std::string>()));
    EXPECT_EQ(key, io::readFile(folder_ / "munge.key").value());
    start("slurmd", {"-D", "-N", node.str(), "-f", conf.string()});
    slurmd_ = daemons_.back().get();
    return R"({"slurmd": "started"})";
  }
  /// slurmctld counts whole seconds: what comes in the second of its last word from slurmd is not
  /// later.
  void restartSlurmd(const std::string& node, std::vector<std::string> more = {}) {
    slurmd_->terminate(std::chrono::seconds(10));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    more.insert(more.end(), {"-D", "-N", node, "-f", path(node + ".conf")});
    start("slurmd", std::move(more));
    slurmd_ = daemons_.back().get();
  }
  /// slurmd -b says that the machine has been booted just now.
  void reboot(const std::string& node) {
    restartSlurmd(node);  // slurmctld has heard of it after the last order
    std::this_thread::sleep_for(std::chrono::seconds(2));
    restartSlurmd(node, {"-b"});
  }
  std::string shown(const char* node) {
    return tool("scontrol", {"show", "node", node, "-o"}).value_or(io::ProcessExit{1}).out;
  }

  /// Drives one action to its end, as the engine does.
  Outcome drive(const Action& action) {
    for (auto until = std::chrono::steady_clock::now() + kLimit;
         std::chrono::steady_clock::now() < until;) {
      auto outcome = runAsync(phase_->act(action, context_), kLimit);
      if (!outcome) return Blocked{"error: " + outcome.error().str()};
      auto* again = std::get_if<Again>(&*outcome);
      if (!again) return *outcome;
      std::this_thread::sleep_for(again->after);
    }
    return Blocked{"took too long"};
  }
  std::string observed(const char* node) {
    auto facts = runAsync(phase_->observe(Subject(NodeName(node))));
    return facts && !facts->empty() ? facts->front().value
           : facts                  ? "nothing"
                                    : facts.error().str();
  }

  int slurmd_timeout_s_ = 60;
  inventory::Cluster cluster_ = poolCluster();
  muster::test::FakeAgentGateway agents_;
  Certificates certificates_;
  SystemClock clock_;
  Context context_;
  std::unique_ptr<Phase> phase_;
  io::Child* slurmd_ = nullptr;
};

TEST_F(SlurmSystem, joinsRunsAJobAndDrainsOnlyAfterIt) {
  EXPECT_EQ(observed("gpu001"), "out");
  auto refused = drive(poolAction("gpu001", "in"));
  ASSERT_TRUE(std::holds_alternative<Blocked>(refused));
  EXPECT_THAT(std::get<Blocked>(refused).why, HasSubstr("no certificate"));
  EXPECT_EQ(observed("gpu001"), "out");

  certificates_.valid.insert(NodeName("gpu001"));
  auto joined = drive(poolAction("gpu001", "in"));
  ASSERT_TRUE(std::holds_alternative<Done>(joined)) << std::get<Blocked>(joined).why;
  EXPECT_EQ(observed("gpu001"), "in");
  auto hello = tool("srun", {"-w", "gpu001", "hostname"});
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->out, std::string(kHost) + "\n") << hello->err;

  // A job that ends when the test says so.
  auto job = tool("sbatch", {"-w", "gpu001", "-o", "/dev/null", "--wrap",
                             fmt::format("while [ ! -e {} ]; do sleep 0.1; done", path("enough"))});
  ASSERT_TRUE(job && job->code == 0) << (job ? job->err : job.error().str());
  const auto job_id = job->out.substr(job->out.find_last_of(' ') + 1,
                                      job->out.find('\n') - job->out.find_last_of(' ') - 1);
  ASSERT_TRUE(eventually([&] {
    return tool("scontrol", {"show", "node", "gpu001", "-o"})->out.find("State=ALLOCATED") !=
           std::string::npos;
  }));
  for (int i = 0; i < 3; ++i) {
    auto waiting = runAsync(phase_->act(poolAction("gpu001", "drained"), context_), kLimit);
    ASSERT_TRUE(waiting && std::holds_alternative<Again>(*waiting)) << "the job still runs";
    if (i > 0) {
      EXPECT_THAT(std::get<Again>(*waiting).waiting_for, HasSubstr("; job " + job_id + " of "));
    }
  }
  Scontrol slurm(*processes_, {{"SLURM_CONF", path("slurm.conf")}, {"TZ", "UTC"}}, clock_);
  auto seen = runAsync(slurm.node("gpu001"));
  ASSERT_TRUE(seen && *seen && (*seen)->reason_since);
  EXPECT_LT(std::chrono::abs(clock_.now() - *(*seen)->reason_since), std::chrono::minutes(2))
      << "the time of the order, for the deadline";
  EXPECT_EQ(observed("gpu001"), "in");
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "enough", ""));
  EXPECT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "drained"))));
  EXPECT_EQ(observed("gpu001"), "drained");
  EXPECT_THAT(tool("scontrol", {"show", "job", job_id, "-o"})->out,
              AllOf(HasSubstr("JobState=COMPLETED"), HasSubstr("ExitCode=0:0")));

  EXPECT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "in"))));
  EXPECT_EQ(observed("gpu001"), "in");
  EXPECT_EQ(agents_.submitted().size(), 1u);
}

/// slurmctld calls the node IDLE then; its job is still there.
TEST_F(SlurmSystem, aDrainWaitsForASuspendedJob) {
  certificates_.valid.insert(NodeName("gpu001"));
  ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "in"))));
  auto job = tool("sbatch", {"-w", "gpu001", "-o", "/dev/null", "--wrap",
                             fmt::format("while [ ! -e {} ]; do sleep 0.1; done", path("enough"))});
  ASSERT_TRUE(job && job->code == 0) << (job ? job->err : job.error().str());
  const auto job_id = job->out.substr(job->out.find_last_of(' ') + 1,
                                      job->out.find('\n') - job->out.find_last_of(' ') - 1);
  ASSERT_TRUE(
      eventually([&] { return shown("gpu001").find("State=ALLOCATED") != std::string::npos; }));
  ASSERT_TRUE(eventually([&] { return tool("scontrol", {"suspend", job_id})->code == 0; }))
      << "slurmd has to have started it";
  ASSERT_TRUE(eventually([&] { return shown("gpu001").find("State=IDLE") != std::string::npos; }))
      << shown("gpu001");
  for (int i = 0; i < 3; ++i) {
    auto waiting = runAsync(phase_->act(poolAction("gpu001", "drained"), context_), kLimit);
    ASSERT_TRUE(waiting && std::holds_alternative<Again>(*waiting)) << "the job is only suspended\n"
                                                                    << shown("gpu001");
    if (i > 0) {
      EXPECT_THAT(std::get<Again>(*waiting).waiting_for, HasSubstr("; job " + job_id + " of "));
    }
  }
  EXPECT_THAT(shown("gpu001"), HasSubstr("State=IDLE+DRAIN"));
  EXPECT_EQ(observed("gpu001"), "in");
  ASSERT_EQ(tool("scontrol", {"resume", job_id})->code, 0);
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "enough", ""));
  EXPECT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "drained"))));
  EXPECT_EQ(observed("gpu001"), "drained");
  EXPECT_THAT(tool("scontrol", {"show", "job", job_id, "-o"})->out,
              HasSubstr("JobState=COMPLETED"));
}

TEST_F(SlurmSystem, doesNotUndoAPersonsDrainNorCountASilentNodeIn) {
  certificates_.valid.insert(NodeName("gpu001"));
  ASSERT_EQ(tool("scontrol", {"update", "NodeName=gpu001", "State=DRAIN", "Reason=bad fan"})->code,
            0);
  auto outcome = drive(poolAction("gpu001", "in"));
  ASSERT_TRUE(std::holds_alternative<Blocked>(outcome));
  EXPECT_THAT(std::get<Blocked>(outcome).why, HasSubstr("'bad fan'"));
  // Resumed by somebody, but no slurmd runs there: Slurm calls it IDLE.
  ASSERT_EQ(tool("scontrol", {"update", "NodeName=gpu002", "State=RESUME"})->code, 0);
  EXPECT_THAT(tool("scontrol", {"show", "node", "gpu002", "-o"})->out, HasSubstr("State=IDLE"));
  EXPECT_EQ(observed("gpu002"), "silent");

  // Both at once are one list of slurmctld's, with the same answers.
  std::vector<std::vector<Fact>> both(2);
  auto look = [](Phase& phase, const char* node, std::vector<Fact>& out) -> Task<void> {
    out = (co_await phase.observe(Subject(NodeName(node)))).value_or(std::vector<Fact>());
  };
  auto all = [](std::vector<Task<void>> looks) -> Async<void> {
    co_await async::awaitAll(std::move(looks));
    co_return Result<void>();
  };
  std::vector<Task<void>> looks;
  looks.push_back(look(*phase_, "gpu001", both[0]));
  looks.push_back(look(*phase_, "gpu002", both[1]));
  ASSERT_TRUE(runAsync(all(std::move(looks)), kLimit));
  ASSERT_TRUE(!both[0].empty() && !both[1].empty());
  EXPECT_EQ(both[0][0].value, "drained");
  EXPECT_THAT(both[0][0].evidence, AllOf(HasSubstr("\"by_person\":true"), HasSubstr("bad fan")));
  EXPECT_EQ(both[1][0].value, "silent");
}

TEST_F(SlurmSystem, doesNotUndoWhatAPersonSetDown) {
  certificates_.valid.insert(NodeName("gpu001"));
  ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "in"))));
  ASSERT_EQ(
      tool("scontrol", {"update", "NodeName=gpu001", "State=DOWN", "Reason=GPU 3 is out"})->code,
      0);
  ASSERT_THAT(shown("gpu001"), HasSubstr("State=DOWN"));
  restartSlurmd("gpu001");  // it registers, as after a cold start
  const auto persons = [&] {
    const auto facts = runAsync(phase_->observe(Subject(NodeName("gpu001"))));
    return facts && !facts->empty() ? facts->front().evidence : std::string();
  };
  EXPECT_EQ(observed("gpu001"), "drained");
  EXPECT_THAT(persons(), AllOf(HasSubstr("\"by_person\":true"), HasSubstr("GPU 3 is out")));
  const auto outcome = drive(poolAction("gpu001", "in"));
  ASSERT_TRUE(std::holds_alternative<Blocked>(outcome));
  EXPECT_THAT(std::get<Blocked>(outcome).why, HasSubstr("'GPU 3 is out'"));
  EXPECT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "drained"))));
  EXPECT_THAT(shown("gpu001"), AllOf(HasSubstr("State=DOWN"), HasSubstr("Reason=GPU 3 is out")))
      << "still theirs";
  EXPECT_EQ(observed("gpu002"), "out")
      << "what slurm.conf gives as a reason is nobody's order: " << shown("gpu002");
}

/// The operator's words from `scontrol update … State=DRAIN` stop a driver change in the plan,
/// until they resume the node or somebody overrides exactly this drain.
TEST_F(SlurmSystem, aPersonsDrainStopsWhateverWouldDisturbTheNode) {
  certificates_.valid.insert(NodeName("gpu001"));
  ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "in"))));
  const Subject node(NodeName("gpu001"));
  muster::test::FakeWorld world;
  muster::test::FakePhase drivers("provision", world);
  drivers.want([](const inventory::Cluster&, const Subject& subject, const FactSet&) {
    std::vector<Goal> goals;
    if (subject.str() != "gpu001") return goals;
    Goal goal;
    goal.facet = {subject, FacetName("driver.nvidia")};
    goal.want = "575";
    goal.disruption = Disruption::Drain;
    goals.push_back(goal);
    return goals;
  });
  FactSet facts;
  const auto planned = [&] {
    for (auto& fact : runAsync(phase_->observe(node)).value_or(std::vector<Fact>()))
      facts.put(std::move(fact));
    return makePlan(cluster_, facts, {{node}, {}}, {&drivers, phase_.get()}).value_or(Plan());
  };
  const auto driverBlockedBy = [](const Plan& plan) {
    for (const auto& action : plan.actions)
      if (action.facet.facet.str() == "driver.nvidia") return action.blocked;
    return std::string("no action");
  };
  EXPECT_EQ(driverBlockedBy(planned()), "");

  const auto drainByHand = [&](const std::string& reason) {
    ASSERT_EQ(
        tool("scontrol", {"update", "NodeName=gpu001", "State=DRAIN", "Reason=" + reason})->code,
        0);
  };
  drainByHand("dimm swap");
  const auto held = planned();
  EXPECT_THAT(driverBlockedBy(held), AllOf(HasSubstr("'dimm swap', by root, since 20"),
                                           HasSubstr("muster pool override gpu001")));
  for (const auto& action : held.actions) EXPECT_NE(action.blocked, "") << action.id;

  const auto words = poolHoldOf(facts, node);
  ASSERT_TRUE(words);
  facts.put({node, FacetName(std::string(kPoolOverrideFacet)), *words, {}, "test", ""});
  const auto overridden = planned();
  EXPECT_EQ(driverBlockedBy(overridden), "");
  EXPECT_THAT(overridden.actions.back().blocked, HasSubstr("resume it by hand"))
      << "the drain itself stays theirs";

  std::this_thread::sleep_for(std::chrono::seconds(1));  // slurmctld's times are whole seconds
  drainByHand("psu swap");
  EXPECT_THAT(driverBlockedBy(planned()), HasSubstr("'psu swap'")) << "another drain";

  ASSERT_EQ(tool("scontrol", {"update", "NodeName=gpu001", "State=RESUME"})->code, 0);
  const auto free = planned();
  for (const auto& action : free.actions) EXPECT_EQ(action.blocked, "") << action.id;
}

TEST_F(SlurmSystem, aNodeThatWasRebootedWhileDrainedJoinsAgain) {
  certificates_.valid.insert(NodeName("gpu001"));
  ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "in"))));
  ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "drained"))));
  reboot("gpu001");
  ASSERT_TRUE(eventually([&] {
    return shown("gpu001").find("State=DOWN+DRAIN") != std::string::npos;
  })) << shown("gpu001");
  auto joined = drive(poolAction("gpu001", "in"));
  ASSERT_TRUE(std::holds_alternative<Done>(joined)) << std::get<Blocked>(joined).why << "\n"
                                                    << shown("gpu001");
  EXPECT_EQ(observed("gpu001"), "in");
}

TEST_F(SlurmSystem, aNodeThatRebootedByItselfStaysOutUntilItMayJoin) {
  certificates_.valid.insert(NodeName("gpu001"));
  ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "in"))));
  reboot("gpu001");
  ASSERT_TRUE(eventually([&] {
    return shown("gpu001").find("unexpectedly rebooted") != std::string::npos;
  })) << shown("gpu001");
  EXPECT_EQ(observed("gpu001"), "out");
  certificates_.valid.clear();
  EXPECT_TRUE(std::holds_alternative<Blocked>(drive(poolAction("gpu001", "in"))));
  certificates_.valid.insert(NodeName("gpu001"));
  auto joined = drive(poolAction("gpu001", "in"));
  ASSERT_TRUE(std::holds_alternative<Done>(joined)) << std::get<Blocked>(joined).why << "\n"
                                                    << shown("gpu001");
}

/// Collectives inside the pool: the scheduler gives the nodes, keeps other work away, and is told
/// the outcome.
TEST_F(SlurmSystem, collectivesOfNodesInThePoolRunAsAStep) {
  agents_.boot(NodeName("gpu002"), wire::Mode::Disk);
  for (const char* node : {"gpu001", "gpu002"}) {
    certificates_.valid.insert(NodeName(node));
    ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction(node, "in")))) << node;
  }
  const auto program = (muster::test::binFolder() / "muster-collective").string();
  const std::vector<std::string> step{
      "--nodes",     "2",   "--ntasks-per-node", "1",     "--exclusive",  program, "--slurm",
      "--transport", "tcp", "--max-bytes",       "65536", "--iterations", "2"};
  const auto ran = tool("srun", step);
  ASSERT_TRUE(ran) << ran.error().str();
  EXPECT_EQ(ran->code, 0) << ran->out << ran->err;
  std::istringstream lines(ran->out);
  std::set<int> ranks;
  for (std::string line; std::getline(lines, line);) {
    const auto report = nlohmann::json::parse(line);
    EXPECT_TRUE(report.at("passed")) << line;
    for (const auto& row : report.at("rows")) ranks.insert(row.at("rank").get<int>());
    EXPECT_EQ(report.at("pairs").at("of").size(), 1u);
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  auto twice = std::vector<std::string>(step.begin() + 5, step.end());
  twice.insert(twice.begin(), {"--overcommit", "--nodes", "2", "--ntasks",
                               "4"});        // the nodes have one processor each
  const auto refused = tool("srun", twice);  // two tasks a node would be two of each rank
  ASSERT_TRUE(refused) << refused.error().str();
  EXPECT_EQ(refused->code, 2) << refused->out;
  EXPECT_THAT(refused->err, HasSubstr("one task a node"));
  auto slow = step;
  slow.insert(slow.end(), {"--min-busbw", "100000"});
  const auto below = tool("srun", slow);
  ASSERT_TRUE(below);
  EXPECT_EQ(below->code, 1) << below->err;
  EXPECT_THAT(below->out, HasSubstr("of bus bandwidth, expected 100000.0"));
}

class SilentSlurmSystem : public SlurmSystem {
 protected:
  SilentSlurmSystem() { slurmd_timeout_s_ = 6; }
};

/// As while a node is imaged: drained, off for longer than slurmctld waits, then booted.
TEST_F(SilentSlurmSystem, aDrainedNodeThatWasOffForLongJoinsAgain) {
  certificates_.valid.insert(NodeName("gpu001"));
  ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "in"))));
  ASSERT_TRUE(std::holds_alternative<Done>(drive(poolAction("gpu001", "drained"))));
  slurmd_->terminate(std::chrono::seconds(10));
  ASSERT_TRUE(eventually([&] { return shown("gpu001").find("State=DOWN") != std::string::npos; }))
      << shown("gpu001");
  EXPECT_EQ(observed("gpu001"), "drained");
  reboot("gpu001");
  auto joined = drive(poolAction("gpu001", "in"));
  ASSERT_TRUE(std::holds_alternative<Done>(joined)) << std::get<Blocked>(joined).why << "\n"
                                                    << shown("gpu001");
  EXPECT_EQ(observed("gpu001"), "in");
}

}  // namespace
}  // namespace muster::pool::test
