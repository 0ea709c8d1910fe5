// SPDX-License-Identifier: Apache-2.0
// AMD GPUs by amd-smi and rocm-smi, which say what they are told to.
#include "validate/checks/amd.h"
#include "tests/validate/fake_host.h"

#include <gtest/gtest.h>

#include <fstream>

namespace muster::validate {
namespace {

using nlohmann::json;
using wire::CheckStatus;

using AmdChecks = FakeHost;

constexpr const char* kAmdStatic =
    R"([{"gpu":0,"asic":{"market_name":"AMD Instinct MI300X","asic_serial":"0xA1"},"bus":{"bdf":"0000:05:00.0"}}])";
std::string amdMetric(const std::string& uncorrectable, const std::string& hotspot) {
  return R"([{"gpu":0,"ecc":{"total_correctable_count":0,"total_uncorrectable_count":)" +
         uncorrectable + R"(},"temperature":{"hotspot":{"value":)" + hotspot + R"(,"unit":"C"}}}])";
}

TEST_F(AmdChecks, amdGpusAreBurntByHip) {
  const json asked{{"model", "MI300X"}};
  EXPECT_EQ(check("gpu.burn", asked).status, CheckStatus::NoData) << "no amd-smi";
  outputs_["amd-smi static"] = {0, kAmdStatic, ""};
  outputs_["amd-smi metric"] = {0, amdMetric("0", "45"), ""};
  outputs_["muster-burn"] = {
      0,
      R"({"format":"muster-burn/1","outcome":"pass","devices":[{"place":"0000:05:00.0","serial":"A","outcome":"pass","stages":[{"name":"gemm bf16 integer","outcome":"pass","values":{"gemm_bf16_gflops":720000}}]}]})",
      ""};
  const auto good = check("gpu.burn", asked);
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  const auto& args = ran_.back().args;
  const auto has = [&args](const char* word) {
    return std::find(args.begin(), args.end(), word) != args.end();
  };
  EXPECT_TRUE(has("hip"));
  EXPECT_TRUE(has("watts,ecc")) << "no reasons of throttling are told by the driver";
  EXPECT_NE(ran_.back().str().find("gemm_bf16_gflops="), std::string::npos)
      << "floors of the table: " << ran_.back().str();
}

TEST_F(AmdChecks, amdGpusByAmdSmi) {
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << "no amd-smi";
  outputs_["amd-smi static"] = {0, kAmdStatic, ""};
  outputs_["amd-smi metric"] = {0, amdMetric("0", "45"), ""};
  const auto good = check("gpu.amd", {{"count", 1}, {"model", "MI300X"}});
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_EQ(check("gpu.amd", {{"count", 8}}).status, CheckStatus::Fail);
  EXPECT_EQ(check("gpu.amd", {{"model", "MI250"}}).status, CheckStatus::Fail);
  outputs_["amd-smi metric"].out = amdMetric("2", "45");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::Fail);
  outputs_["amd-smi metric"].out = amdMetric("0", "106");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::Fail);
  outputs_["amd-smi metric"].out = amdMetric("-1", "45");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << "that is no count";
  outputs_["amd-smi metric"].out = amdMetric("7,\"total_uncorrectable_count\":0", "45");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << "which of the two?";
  outputs_["amd-smi metric"].out = amdMetric("0,\"total_deferred_count\":5", "45");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::Fail);
  outputs_["amd-smi metric"].out = amdMetric("0", "45,\"unit\":\"C\"},\"mem\":{\"value\":110");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::Fail) << "hot memory";
  EXPECT_EQ(check("gpu.amd", {{"model", "MI300"}}).status, CheckStatus::Fail) << "no whole word";
  outputs_["amd-smi metric"].out = amdMetric(R"("N/A")", "45");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << "N/A is no zero";
  for (const char* text : {"[]", "", R"([{"gpu":1}])", R"({"error":"no driver"})"}) {
    outputs_["amd-smi metric"].out = text;
    EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << text;
  }
  EXPECT_TRUE(parseAmdSmi(R"({"gpu_data":[]})", "[]")->empty());
}

/// The form of rocm-smi's answer on MI250 and MI300 nodes; numbers are text there.
TEST_F(AmdChecks, amdGpusByRocmSmiWhereThereIsNoAmdSmi) {
  const auto cards = [](const std::string& series, const std::string& hot) {
    return json{{"card0",
                 {{"Temperature (Sensor edge) (C)", "41.0"},
                  {"Temperature (Sensor junction) (C)", hot},
                  {"Serial Number", "692139000119"},
                  {"PCI Bus", "0000:C9:00.0"},
                  {series, "AMD Instinct MI300X OAM"},
                  {"Card Model", "0x74a1"}}},
                {"system", {{"Driver version", "6.7.0"}}}}
        .dump();
  };
  outputs_["rocm-smi"] = {0, cards("Card Series", "45.0"), ""};
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << "the kernel reports no error counts";
  write("sys/bus/pci/devices/0000:c9:00.0/ras/umc_err_count", "ue: 0\nce: 3");
  const auto good = check("gpu.amd", {{"count", 1}, {"model", "MI300X"}});
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_EQ(good.evidence[0]["serial"], "692139000119");
  outputs_["rocm-smi"].out = cards("Card series", "45.0");  // before ROCm 6
  EXPECT_EQ(check("gpu.amd", {{"model", "MI300X"}}).status, CheckStatus::Pass);
  outputs_["rocm-smi"].out = cards("Card Series", "N/A");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData)
      << "no temperature is no good temperature";
  outputs_["rocm-smi"].out = cards("Card Series", "107.0");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::Fail);
  outputs_["rocm-smi"].out = cards("Card Series", "45.0");
  write("sys/bus/pci/devices/0000:c9:00.0/ras/umc_err_count", "ue: 1\nce: 0");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::Fail);
  for (const char* text :
       {"", "{}", "[]", R"({"card0":{"Card Series":"x"}})", R"({"card0":"N/A"})"}) {
    outputs_["rocm-smi"].out = text;
    EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << text;
  }
  outputs_["amd-smi"] = {1, "", "no driver"};
  outputs_["rocm-smi"].out = cards("Card Series", "45.0");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData)
      << "an amd-smi that fails is not replaced by another word";
}

}  // namespace
}  // namespace muster::validate
