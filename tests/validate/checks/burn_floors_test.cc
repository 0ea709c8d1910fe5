// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/burn_floors.h"

#include "validate/checks/check_row.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace muster::validate {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::CheckStatus;

constexpr const char* kH100 = "NVIDIA H100 80GB HBM3";

Verdict burnt(double first, double second) {
  auto verdict = pass("2 GPUs burnt");
  verdict.values = {{"gpu0.copy_host_to_device_gbytes_per_s", 55},
                    {"gpu0.copy_device_to_host_gbytes_per_s", 54},
                    {"gpu0.copy_device_to_0000:1b:00.0_gbytes_per_s", first},
                    {"gpu1.copy_device_to_0000:43:00.0_gbytes_per_s", second},
                    {"gpu0.gemm_bf16_gflops", 7e5},
                    {"gpu0.gemm_fp16_gflops", 7e5},
                    {"gpu0.gemm_fp16_plain_gflops", 7e5},
                    {"gpu0.verified_share", 1}};
  return verdict;
}
Verdict evaluated(double first, double second, const char* model = kH100, std::size_t gpus = 8) {
  auto verdict = burnt(first, second);
  evaluateCopiesAndNameTheRest(verdict, model, gpus, burnFloors(model, "gemm,memory,copy"));
  return verdict;
}

TEST(BurnFloors, areOfTheStagesThatRun) {
  EXPECT_THAT(burnFloors(kH100, "gemm,copy"), Contains("gemm_tf32_gflops=335700"));
  EXPECT_THAT(burnFloors(kH100, "gemm,copy"), Contains("copy_device_to_host_gbytes_per_s=48"));
  EXPECT_THAT(burnFloors(kH100, "memory"), Not(Contains("gemm_tf32_gflops=335700")));
  EXPECT_TRUE(burnFloors("NVIDIA L4000", "gemm,memory,copy").empty());
}

/// Copies inside one GPU that others have measured with other programs, read and write counted.
TEST(BurnFloors, ofMemoryLieCloselyBelowWhatOthersHaveMeasured) {
  struct Row {
    const char* model;
    double measured;
    const char* source;
  };
  for (const auto& row :
       {Row{kH100, 2475, "NVIDIA/nccl#1264, p2pBandwidthLatencyTest, the slowest of eight"},
        Row{"NVIDIA A100-SXM4-80GB", 1709, "BabelStream 5.0 (CUDA) on EPCC's Tursa"},
        Row{"NVIDIA GH200 480GB", 2979, "UoB-HPC/BabelStream#194"},
        Row{"NVIDIA H20-3e", 2 * 1115.7, "NVIDIA/nvbandwidth#48, device_local_copy"},
        Row{"AMD Instinct MI300X", 4256, "AMD's sample of BabelStream 5.0 (HIP)"}}) {
    const std::string key = "memory_copy_gbytes_per_s=";
    double floor = 0;
    for (const auto& each : burnFloors(row.model, "memory"))
      if (each.starts_with(key)) floor = std::stod(each.substr(key.size()));
    EXPECT_GE(floor, 0.8 * row.measured) << row.model << ": " << row.source;
    EXPECT_LE(floor, 0.95 * row.measured) << row.model << ": " << row.source;
  }
}

TEST(BurnFloors, aPairOfGpusBelowItsShareFails) {
  const auto good = evaluated(380, 252);
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  const auto slow = evaluated(380, 250);
  EXPECT_EQ(slow.status, CheckStatus::Fail);
  EXPECT_THAT(slow.text,
              AllOf(HasSubstr("gpu1.copy_device_to_0000:43:00.0_gbytes_per_s: 250.0 GB/s"),
                    HasSubstr("0.75 of 335 GB/s, Azure"), Not(HasSubstr("gpu0"))));
  EXPECT_EQ(evaluated(380, std::nan("")).status, CheckStatus::Fail);
}

TEST(BurnFloors, theFloorOfPairsIsOfBoardsWithSwitches) {
  const auto four = evaluated(95, 95, kH100, 4);
  EXPECT_EQ(four.status, CheckStatus::Pass) << "a pair has a third of the links there";
  EXPECT_THAT(four.text, HasSubstr("copies between GPUs"));
}

TEST(BurnFloors, ratesWithoutAFloorAreNamed) {
  const auto good = evaluated(380, 390);
  EXPECT_THAT(good.text, HasSubstr("; no floor, information only: gemm_fp16_gflops"));
  EXPECT_THAT(good.text, AllOf(Not(HasSubstr("plain")), Not(HasSubstr("bf16")),
                               Not(HasSubstr("host")), Not(HasSubstr("share"))));
  EXPECT_EQ(evaluated(380, 390, "NVIDIA L4000").text, "2 GPUs burnt") << "no table knows it at all";
}

Verdict ofEight(double last, const char* value, int gpus = 8) {
  auto verdict = pass("8 GPUs burnt");
  for (int gpu = 0; gpu < gpus; ++gpu)
    verdict.values[fmt::format("gpu{}.{}", gpu, value)] =
        gpu == gpus - 1 ? last : 2900 + 10.0 * gpu;
  compareGpusOfTheNode(verdict);
  return verdict;
}

/// A GPU that lost a tenth of its memory's rate passes the table's floor.
TEST(BurnFloors, oneGpuFarBelowTheOthersOfItsNodeFails) {
  EXPECT_EQ(ofEight(2650, "memory_copy_gbytes_per_s").status, CheckStatus::Pass);
  const auto slow = ofEight(2600, "memory_copy_gbytes_per_s");
  EXPECT_EQ(slow.status, CheckStatus::Fail);
  EXPECT_THAT(slow.text, AllOf(HasSubstr("gpu7.memory_copy_gbytes_per_s is 2600"),
                               HasSubstr("reach 2930"), HasSubstr("0.9"), Not(HasSubstr("gpu0"))));
  EXPECT_EQ(ofEight(2400, "gemm_fp16_gflops").status, CheckStatus::Pass);
  EXPECT_EQ(ofEight(2300, "gemm_fp16_gflops").status, CheckStatus::Fail);
  EXPECT_EQ(ofEight(std::nan(""), "memory_gbytes_per_s").status, CheckStatus::Fail);
}

TEST(BurnFloors, whatIsNotAlikeIsNotCompared) {
  EXPECT_EQ(ofEight(100, "memory_copy_gbytes_per_s", 3).status, CheckStatus::Pass)
      << "of three nobody can say which is right";
  for (const char* value : {"gemm_fp16_plain_gflops", "copy_host_to_device_gbytes_per_s",
                            "verified_share", "copy_device_to_0000:1b:00.0_gbytes_per_s"})
    EXPECT_EQ(ofEight(100, value).status, CheckStatus::Pass) << value;
  auto failed_before = failed("a product is wrong");
  for (int gpu = 0; gpu < 8; ++gpu)
    failed_before.values[fmt::format("gpu{}.memory_copy_gbytes_per_s", gpu)] = gpu ? 2900 : 1;
  compareGpusOfTheNode(failed_before);
  EXPECT_EQ(failed_before.text, "a product is wrong");
}

TEST(BurnFloors, whatHasFailedKeepsItsWords) {
  auto verdict = burnt(380, 10);
  verdict.status = CheckStatus::Fail, verdict.text = "a product is wrong";
  evaluateCopiesAndNameTheRest(verdict, kH100, 8, burnFloors(kH100, "gemm,copy"));
  EXPECT_EQ(verdict.text, "a product is wrong");
}

}  // namespace
}  // namespace muster::validate
