// SPDX-License-Identifier: Apache-2.0
// A step of Slurm as a job: environment, lists of hosts, addresses. tests/pool runs it under a real
// Slurm.
#include "validate/collective/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::collective {
namespace {

using ::testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

const Environment kStep{{"SLURM_JOB_ID", "17"},        {"SLURM_STEP_ID", "0"},
                        {"SLURM_STEP_NUM_NODES", "4"}, {"SLURM_STEP_NUM_TASKS", "4"},
                        {"SLURM_NODEID", "2"},         {"SLURM_STEP_NODELIST", "gpu[007-009,12]"}};

TEST(SlurmStep, isReadFromItsEnvironment) {
  const auto step = slurmStepOf(kStep);
  ASSERT_TRUE(step) << step.error().str();
  EXPECT_EQ(step->id, "slurm-17.0");
  EXPECT_EQ(step->nodes, 4);
  EXPECT_EQ(step->node, 2);
  EXPECT_EQ(step->first, "gpu007");
  Job wanted;
  wanted.local_ranks = 8;
  const auto part = partOf(*step, "10.0.0.7", 41000, wanted);
  EXPECT_EQ(part.ranks, 32);
  EXPECT_EQ(part.first_rank, 16);
  EXPECT_EQ(part.meeting, "10.0.0.7:41000");
}

TEST(SlurmStep, olderSlurmNamesTheJobsNodes) {
  auto environment = kStep;
  for (const char* key : {"SLURM_STEP_NUM_NODES", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"})
    environment.erase(key);
  environment["SLURM_NNODES"] = "2", environment["SLURM_NTASKS"] = "2",
  environment["SLURM_NODEID"] = "1", environment["SLURM_JOB_NODELIST"] = "a,b";
  EXPECT_EQ(slurmStepOf(environment)->first, "a");
}

TEST(SlurmStep, whatIsNoStepIsRefusedWithTheSrunThatIsMeant) {
  EXPECT_THAT(slurmStepOf({}).error().str(), HasSubstr("srun --nodes N --ntasks-per-node 1"));
  for (const auto& [key, value] : Environment{{"SLURM_STEP_NUM_TASKS", "32"},
                                              {"SLURM_NODEID", "4"},
                                              {"SLURM_NODEID", "-1"},
                                              {"SLURM_STEP_NUM_NODES", "0"},
                                              {"SLURM_JOB_ID", "many"},
                                              {"SLURM_STEP_NODELIST", "gpu[1"}}) {
    auto environment = kStep;
    environment[key] = value;
    const auto step = slurmStepOf(environment);
    ASSERT_FALSE(step) << key << "=" << value;
    EXPECT_EQ(step.error().code(), ErrorCode::InvalidInput);
  }
}

TEST(SlurmStep, theFirstHostOfAList) {
  for (const auto& [list, first] : Environment{{"gpu001", "gpu001"},
                                               {"gpu001,gpu002", "gpu001"},
                                               {"gpu[001-004,9],x7", "gpu001"},
                                               {"r[2,4]n[01-16]-ib", "r2n01-ib"},
                                               {"a[10]", "a10"}})
    EXPECT_EQ(*firstHost(list), first) << list;
  for (const char* list : {"", ",", "gpu[", "gpu[]", "gpu[a-b]", "gpu1]"})
    EXPECT_FALSE(firstHost(list)) << list;
}

TEST(SlurmStep, addressesAreThoseOfSlurmctldAndNeverLoopback) {
  EXPECT_EQ(*addressOf(
                "NodeName=gpu001 Arch=x86_64 NodeAddr=10.1.2.3 NodeHostName=gpu001 Version=22.05\n",
                "gpu001"),
            "10.1.2.3");
  EXPECT_THAT(addressOf("NodeName=gpu001 NodeAddr=localhost\n", "gpu001").error().str(),
              HasSubstr("every host meets itself"));
  EXPECT_EQ(addressOf("NodeName=gpu001\n", "gpu001").error().code(), ErrorCode::NotFound);
  EXPECT_THAT(addressOf("NodeAddr=no-such-host.invalid", "gpu001").error().str(),
              HasSubstr("--meeting"));
}

}  // namespace
}  // namespace muster::collective
