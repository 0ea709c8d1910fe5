// Slurm's words, as scontrol of 22.05 printed them.
#include "pool/slurm.h"

#include <gtest/gtest.h>

namespace muster::pool::test {
namespace {

std::string record(std::string_view state, int cpus = 0, std::string_view started = "2026-11-20T15:07:00", std::string_view tail = "") {
  return fmt::format(
      "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc={} CPUEfctv=1 CPUTot=1 CPULoad=13.39 AvailableFeatures=(null) "
      "ActiveFeatures=(null) Gres=(null) "
      "NodeAddr=10.99.0.1 NodeHostName=localhost Port=17001 Version=22.05.8 OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=1 "
      "AllocMem=0 FreeMem=14411 "
      "Sockets=1 Boards=1 State={} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=gpu  BootTime=None "
      "SlurmdStartTime={} "
      "LastBusyTime=Unknown CfgTRES=cpu=1,mem=1M,billing=1 AllocTRES= ExtSensorsTemp=n/s{}\n",
      cpus, state, started, tail);
}

TEST(SlurmNode, takesJobsOnlyWhenItAnswersAndIsNotTakenOut) {
  for (auto state : {"IDLE", "MIXED", "ALLOCATED", "IDLE+PLANNED"}) EXPECT_TRUE(parseSlurmNode(record(state))->takesJobs()) << state;
  for (auto state : {"DOWN", "IDLE+DRAIN", "IDLE+NOT_RESPONDING", "IDLE*", "DOWN*", "ALLOCATED+DRAIN", "IDLE+DRAIN+NOT_RESPONDING",
                     "UNKNOWN", "FUTURE", "IDLE+POWERED_DOWN", "IDLE+FAIL", "ERROR"})
    EXPECT_FALSE(parseSlurmNode(record(state))->takesJobs()) << state;
}

TEST(SlurmNode, wouldTakeJobsAsSoonAsItAnswers) {
  for (auto state : {"IDLE+NOT_RESPONDING", "IDLE*", "IDLE+POWERED_DOWN", "MIXED+REBOOT_ISSUED"})
    EXPECT_TRUE(parseSlurmNode(record(state))->wouldTakeJobs()) << state;
  for (auto state : {"DOWN", "DOWN*", "IDLE+DRAIN", "IDLE+DRAIN+NOT_RESPONDING", "IDLE+FAIL", "UNKNOWN", "FUTURE"})
    EXPECT_FALSE(parseSlurmNode(record(state))->wouldTakeJobs()) << state;
}

TEST(SlurmNode, hasJobsUntilTheLastOneHasEnded) {
  EXPECT_TRUE(parseSlurmNode(record("ALLOCATED+DRAIN", 1))->hasJobs());
  EXPECT_TRUE(parseSlurmNode(record("MIXED+DRAIN", 1))->hasJobs());
  EXPECT_TRUE(parseSlurmNode(record("IDLE+COMPLETING+DRAIN"))->hasJobs());
  EXPECT_FALSE(parseSlurmNode(record("IDLE+DRAIN"))->hasJobs());
  EXPECT_FALSE(parseSlurmNode(record("DOWN+COMPLETING", 1))->hasJobs());
}

TEST(SlurmNode, knowsWhetherASlurmdWasEverThereAndWhyItIsDrained) {
  EXPECT_FALSE(parseSlurmNode(record("DOWN", 0, "None"))->slurmd_was_seen);
  EXPECT_TRUE(parseSlurmNode(record("DOWN"))->slurmd_was_seen);
  EXPECT_EQ(parseSlurmNode(record("IDLE+DRAIN", 0, "None", " Reason=muster: driver changes [root@2026-11-20T15:07:00]"))->reason,
            "muster: driver changes");
  EXPECT_EQ(parseSlurmNode(record("IDLE+DRAIN", 0, "None", " Reason=bad fan"))->reason, "bad fan");
}

TEST(SlurmNode, refusesOtherText) {
  EXPECT_FALSE(parseSlurmNode(""));
  EXPECT_FALSE(parseSlurmNode("slurm_load_node error: Unable to contact slurm controller (connect failure)"));
  EXPECT_FALSE(parseSlurmNode("NodeName=n1 Arch=x86_64"));
}

}  // namespace
}  // namespace muster::pool::test
