// SPDX-License-Identifier: Apache-2.0
// What slurmctld lists, by lines of a real slurmctld 22.05.8.
#include "pool/idle_holds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(IdleHolds, readsNodesWithTheirStateAndPartitions) {
  const auto read = parseListedNodes(
      "NodeName=gpu001 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 State=IDLE ThreadsPerCore=1 "
      "TmpDisk=0 Weight=1 Partitions=gpu,debug BootTime=2026-11-26T18:11:14\n"
      "NodeName=gpu002 CPUAlloc=1 State=MIXED+DRAIN ThreadsPerCore=1 Partitions=gpu \n");
  ASSERT_TRUE(read) << read.error().str();
  ASSERT_THAT(*read, SizeIs(2));
  EXPECT_EQ(read->at(0).name, "gpu001");
  EXPECT_EQ(read->at(0).state, "IDLE");
  EXPECT_THAT(read->at(0).partitions, ElementsAre("gpu", "debug"));
  EXPECT_EQ(read->at(1).state, "MIXED+DRAIN");
  EXPECT_FALSE(parseListedNodes("slurm_load_node error\n")) << "no answer is not: no nodes";
}

TEST(IdleHolds, readsWaitingJobs) {
  const auto read = parseWaitingJobs(
      "1|gpu|gpu[001-002]|ReqNodeNotAvail, May be reserved for other job\n"
      "7_[1-4]|gpu,debug||Priority\n");
  ASSERT_TRUE(read) << read.error().str();
  ASSERT_THAT(*read, SizeIs(2));
  EXPECT_THAT(read->at(0).nodes, ElementsAre("gpu001", "gpu002"));
  EXPECT_EQ(read->at(0).reason, "ReqNodeNotAvail, May be reserved for other job");
  EXPECT_THAT(read->at(1).partitions, ElementsAre("gpu", "debug"));
  EXPECT_TRUE(read->at(1).nodes.empty());
  EXPECT_FALSE(parseWaitingJobs("squeue: error\n"));
}

TEST(IdleHolds, knowsWhichJobsMayWantANode) {
  const auto wants = [](const char* line) {
    const auto jobs = parseWaitingJobs(line);
    EXPECT_TRUE(jobs) << line;
    return mayWant(jobs->at(0), {"gpu", "debug"}, {"gpu001", "gpu002"});
  };
  for (const char* line :
       {"1|gpu||None", "1|gpu||Resources", "1|debug||Priority", "1|cpu,gpu||Resources",
        "1|gpu|gpu001|ReqNodeNotAvail, May be reserved for other job",
        "1|gpu||Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
        "partitions",
        "1|gpu||ReqNodeNotAvail, UnavailableNodes:gpu[002-003]"})
    EXPECT_TRUE(wants(line)) << line;
  for (const char* line :
       {"1|cpu||Resources", "1|gpu|gpu007|Resources", "1|gpu||JobHeldUser", "1|gpu||Dependency",
        "1|gpu||BeginTime", "1|gpu||Licenses", "1|gpu||QOSMaxJobsPerUserLimit",
        "1|gpu||ReqNodeNotAvail, UnavailableNodes:gpu[008-009]"})
    EXPECT_FALSE(wants(line)) << line;
}

TEST(IdleHolds, aHoldIsNamedByClusterAndNode) {
  EXPECT_EQ(holdName("hall-2", "gpu001"), "muster-hall-2-check-gpu001");
}

}  // namespace
}  // namespace muster::pool
