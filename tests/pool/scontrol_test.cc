// SPDX-License-Identifier: Apache-2.0
// Slurm's words, as scontrol of 22.05 printed them.
#include "pool/scontrol.h"
#include "base/async/await_all.h"

#include "tests/fakes/fake_process_runner.h"
#include "tests/virtual_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace muster::pool::test {
namespace {

std::string record(std::string_view state, int cpus = 0,
                   std::string_view started = "2026-11-20T15:07:00", std::string_view tail = "") {
  return fmt::format(
      "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc={} CPUEfctv=1 CPUTot=1 CPULoad=13.39 "
      "AvailableFeatures=(null) "
      "ActiveFeatures=(null) Gres=(null) "
      "NodeAddr=10.99.0.1 NodeHostName=localhost Port=17001 Version=22.05.8 OS=Linux 6.1.0 #1 SMP "
      "PREEMPT_DYNAMIC @0  RealMemory=1 "
      "AllocMem=0 FreeMem=14411 "
      "Sockets=1 Boards=1 State={} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
      "Partitions=gpu  BootTime=None "
      "SlurmdStartTime={} "
      "LastBusyTime=Unknown CfgTRES=cpu=1,mem=1M,billing=1 AllocTRES= ExtSensorsTemp=n/s{}\n",
      cpus, state, started, tail);
}

TEST(SlurmNode, takesJobsOnlyWhenItAnswersAndIsNotTakenOut) {
  for (auto state : {"IDLE", "MIXED", "ALLOCATED", "IDLE+PLANNED"})
    EXPECT_TRUE(parseSlurmNode(record(state))->takesJobs()) << state;
  for (auto state : {"DOWN", "IDLE+DRAIN", "IDLE+NOT_RESPONDING", "IDLE*", "DOWN*",
                     "ALLOCATED+DRAIN", "IDLE+DRAIN+NOT_RESPONDING", "UNKNOWN", "FUTURE",
                     "IDLE+POWERED_DOWN", "IDLE+FAIL", "ERROR"})
    EXPECT_FALSE(parseSlurmNode(record(state))->takesJobs()) << state;
}

TEST(SlurmNode, wouldTakeJobsAsSoonAsItAnswers) {
  for (auto state : {"IDLE+NOT_RESPONDING", "IDLE*", "IDLE+POWERED_DOWN", "MIXED+REBOOT_ISSUED"})
    EXPECT_TRUE(parseSlurmNode(record(state))->wouldTakeJobs()) << state;
  for (auto state : {"DOWN", "DOWN*", "IDLE+DRAIN", "IDLE+DRAIN+NOT_RESPONDING", "IDLE+FAIL",
                     "UNKNOWN", "FUTURE"})
    EXPECT_FALSE(parseSlurmNode(record(state))->wouldTakeJobs()) << state;
}

TEST(SlurmNode, compactStatesAreAStateWithAFlag) {
  const std::string reason = "\n   Reason=dimm swap [anna@2026-11-25T10:00:00]";
  for (auto state : {"DRAINED", "DRAINING", "FAIL", "FAILING", "DRAINED*"}) {
    const auto node = parseSlurmNode(record(state, 0, "2026-11-20T15:07:00", reason));
    ASSERT_TRUE(node) << state;
    EXPECT_TRUE(node->takenOutByPerson()) << state;
    EXPECT_FALSE(node->takesJobs()) << state;
  }
  EXPECT_TRUE(parseSlurmNode(record("DRAINING"))->hasJobs());
  EXPECT_FALSE(parseSlurmNode(record("DRAINED"))->hasJobs());
  EXPECT_TRUE(parseSlurmNode(record("DRAINED"))->draining());
}

TEST(SlurmNode, hasJobsUntilTheLastOneHasEnded) {
  EXPECT_TRUE(parseSlurmNode(record("ALLOCATED+DRAIN", 1))->hasJobs());
  EXPECT_TRUE(parseSlurmNode(record("MIXED+DRAIN", 1))->hasJobs());
  EXPECT_TRUE(parseSlurmNode(record("IDLE+COMPLETING+DRAIN"))->hasJobs());
  EXPECT_FALSE(parseSlurmNode(record("IDLE+DRAIN"))->hasJobs());
  EXPECT_FALSE(parseSlurmNode(record("DOWN+COMPLETING", 1))->hasJobs());
  for (auto [state, has] : {std::pair("IDLE+DRAIN", true), std::pair("DOWN+DRAIN", false)}) {
    auto node = parseSlurmNode(record(state));
    node->has_listed_job = true;
    EXPECT_EQ(node->hasJobs(), has) << state;
  }
}

TEST(SlurmNode, knowsWhetherASlurmdWasEverThereAndWhyItIsDrained) {
  EXPECT_FALSE(parseSlurmNode(record("DOWN", 0, "None"))->slurmd_was_seen);
  EXPECT_TRUE(parseSlurmNode(record("DOWN"))->slurmd_was_seen);
  EXPECT_EQ(parseSlurmNode(record("IDLE+DRAIN", 0, "None",
                                  " Reason=muster: driver changes [root@2026-11-20T15:07:00]"))
                ->reason,
            "muster: driver changes");
  EXPECT_EQ(parseSlurmNode(record("IDLE+DRAIN", 0, "None", " Reason=bad fan"))->reason, "bad fan");
}

TEST(SlurmNode, tellsAPersonsDownFromSlurmctldsOwn) {
  const auto taken = [](std::string_view state, const std::string& reason) {
    return parseSlurmNode(
               record(state, 0, "None",
                      reason.empty() ? "" : " Reason=" + reason + " [root@2026-11-20T15:07:00]"))
        ->takenOutByPerson();
  };
  for (const auto* own : {"", "Not responding", "Node unexpectedly rebooted",
                          "Low RealMemory (reported:7 < 100.00% of configured:8)",
                          "gres/gpu count reported lower than configured (7 < 8)",
                          "Not responding : Node unexpectedly rebooted",
                          "reboot ASAP : reboot issued : reboot timed out",
                          "muster: driver nvidia changes : Node unexpectedly rebooted"})
    EXPECT_FALSE(taken("DOWN", own)) << own;
  for (const auto* own : {"Kill task failed", "batch job complete failure", "Prolog error",
                          "Low RealMemory (reported:7 < 100.00% of configured:8)",
                          "gres/gpu count reported lower than configured (7 < 8)"})
    EXPECT_FALSE(taken("IDLE+DRAIN", own)) << own << ": slurmctld drained it, nobody else";
  EXPECT_TRUE(taken("IDLE+DRAIN", "")) << "nobody says why: it is not muster's to undo";
  for (const auto* persons : {"GPU 3 is out", "Not responding since I pulled its cable",
                              "bob: fan swap : Not responding"}) {
    EXPECT_TRUE(taken("DOWN", persons)) << persons;
    EXPECT_TRUE(taken("DOWN+NOT_RESPONDING", persons)) << persons;
    EXPECT_TRUE(taken("IDLE+DRAIN", persons)) << persons;
    EXPECT_FALSE(taken("IDLE", persons)) << "only a note";
  }
  EXPECT_TRUE(taken("IDLE+FAIL", "bad fan"));
  EXPECT_FALSE(
      parseSlurmNode(record("DOWN", 0, "None", " Reason=not yet delivered"))->takenOutByPerson())
      << "so it stands in slurm.conf";
}

TEST(SlurmNode, mustersWordsOfAnotherUserAreAPersons) {
  const auto taken = [](std::string_view by) {
    return parseSlurmNode(
               record("IDLE+DRAIN", 0, "None",
                      fmt::format(" Reason=muster: dimm swap [{}@2026-11-20T15:07:00]", by)))
        ->takenOutByPerson();
  };
  EXPECT_TRUE(taken("anna"));
  EXPECT_TRUE(taken("4294967294"));
  EXPECT_FALSE(taken("root"));
  EXPECT_FALSE(taken(std::to_string(geteuid())));
}

/// A slurmctld that counts what it is asked.
class SlurmList : public ::testing::Test {
 protected:
  SlurmList() {
    processes_.answer = [this](const io::Command& command) -> Result<io::ProcessExit> {
      if (command.program == "squeue") return queue_;
      const bool all = command.args == std::vector<std::string>{"show", "node", "-o"};
      if (all) ++lists_;
      if (refuses_) return io::ProcessExit{1, "", "Unable to contact slurm controller"};
      std::string out;
      for (const auto& [name, state] : nodes_)
        if (all || command.args.at(2) == name)
          out += fmt::format("NodeName={} CPUAlloc=0 State={} SlurmdStartTime=None\n", name, state);
      return io::ProcessExit{0, out, ""};
    };
  }
  std::vector<std::string> lookAtAll(const std::vector<std::string>& names) {
    std::vector<std::string> out(names.size());
    auto look = [](Scontrol& slurm, std::string name, std::string& out) -> Task<void> {
      auto node = co_await slurm.node(std::move(name));
      out = !node    ? node.error().text()
            : !*node ? "unknown"
                     : (*node)->state() + ((*node)->hasJobs() ? " busy" : "");
    };
    std::vector<Task<void>> looks;
    for (std::size_t i = 0; i < names.size(); ++i) looks.push_back(look(slurm_, names[i], out[i]));
    auto all = [](std::vector<Task<void>> looks) -> Task<bool> {
      co_await async::awaitAll(std::move(looks));
      co_return true;
    };
    loop_.run(all(std::move(looks)));
    return out;
  }

  muster::test::VirtualLoop loop_;
  muster::test::FakeProcessRunner processes_;
  Scontrol slurm_{processes_, {}, loop_.clock};
  std::map<std::string, std::string> nodes_ = {
      {"n1", "IDLE"}, {"n2", "IDLE+DRAIN"}, {"n10", "DOWN"}};
  io::ProcessExit queue_;
  int lists_ = 0;
  bool refuses_ = false;
};

TEST_F(SlurmList, manyLooksAtOnceAreOneQuestion) {
  EXPECT_EQ(lookAtAll({"n1", "n2", "n10", "n3"}),
            (std::vector<std::string>{"IDLE", "IDLE+DRAIN", "DOWN", "unknown"}));
  EXPECT_EQ(lists_, 1);
  EXPECT_EQ(processes_.commands.size(), 2u) << "scontrol for the nodes, squeue for suspended jobs";
  EXPECT_EQ(lookAtAll({"n1", "n2"}).at(0), "IDLE");
  EXPECT_EQ(processes_.commands.size(), 2u) << "within a second the list still counts";
  loop_.clock.advance(kListAge);
  nodes_["n1"] = "ALLOCATED";
  EXPECT_EQ(lookAtAll({"n1", "n2"}).at(0), "ALLOCATED busy");
  EXPECT_EQ(lists_, 2);
}

TEST_F(SlurmList, oneLookAsksForItsNodeOnly) {
  EXPECT_EQ(lookAtAll({"n1"}).at(0), "IDLE");
  EXPECT_EQ(lists_, 0);
}

/// slurmctld calls a node IDLE when all its jobs are suspended.
TEST_F(SlurmList, suspendedJobsCountAsJobs) {
  queue_.out = "n[1-2]\nn10\n";
  EXPECT_EQ(lookAtAll({"n1", "n2", "n10"}),
            (std::vector<std::string>{"IDLE busy", "IDLE+DRAIN busy", "DOWN"}));
  loop_.clock.advance(kListAge);
  queue_.out = "n2\n";
  EXPECT_EQ(lookAtAll({"n1", "n2", "n10"}),
            (std::vector<std::string>{"IDLE", "IDLE+DRAIN busy", "DOWN"}));
  loop_.clock.advance(kListAge);
  EXPECT_EQ(lookAtAll({"n2"}), (std::vector<std::string>{"IDLE+DRAIN busy"}));
  EXPECT_EQ(processes_.commands.back().args.back(), "--nodelist=n2");
}

TEST_F(SlurmList, withoutSqueueNobodyIsIdle) {
  for (const auto& broken :
       {io::ProcessExit{1, "", "slurm_load_jobs error"}, io::ProcessExit{0, "n[1-\n", ""}}) {
    queue_ = broken;
    for (const auto& said : lookAtAll({"n1", "n2"}))
      EXPECT_TRUE(said.starts_with("squeue")) << said;
    for (const auto& said : lookAtAll({"n2"})) EXPECT_TRUE(said.starts_with("squeue")) << said;
  }
}

TEST_F(SlurmList, anOrderOfOursMakesTheListWorthless) {
  lookAtAll({"n1", "n2"});
  auto order = [](Scontrol& slurm) -> Task<bool> {
    co_return (co_await slurm.drain("n1", "muster: admission: void")).has_value();
  };
  ASSERT_TRUE(loop_.run(order(slurm_)));
  nodes_["n1"] = "IDLE+DRAIN";
  EXPECT_EQ(lookAtAll({"n1", "n2"}).at(0), "IDLE+DRAIN");
  EXPECT_EQ(lists_, 2);
}

TEST_F(SlurmList, aSlurmctldThatDoesNotAnswerTellsEverybodyWhoAsked) {
  refuses_ = true;
  for (const auto& said : lookAtAll({"n1", "n2"}))
    EXPECT_EQ(said, "slurmctld does not answer: Unable to contact slurm controller");
  refuses_ = false;
  EXPECT_EQ(lookAtAll({"n1", "n2"}).at(1), "IDLE+DRAIN");
}

TEST(SlurmNode, refusesOtherText) {
  EXPECT_FALSE(parseSlurmNode(""));
  EXPECT_FALSE(parseSlurmNode(
      "slurm_load_node error: Unable to contact slurm controller (connect failure)"));
  EXPECT_FALSE(parseSlurmNode("NodeName=n1 Arch=x86_64"));
}

}  // namespace
}  // namespace muster::pool::test
