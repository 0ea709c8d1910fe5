// SPDX-License-Identifier: Apache-2.0
// GPU checks over the simulated NVML, which has the real library's ABI: each fault is found, and
// what is not there does not pass.
#include "tests/validate/simulated_gpus.h"
#include "validate/checks/expectations.h"
#include "validate/checks/gpu_snapshot.h"
#include "validate/checks/nvml.h"

#include <cmath>

namespace muster::validate {
namespace {

using nlohmann::json;
using wire::CheckStatus;

class GpuChecks : public SimulatedGpus {
 protected:
  GpuChecks() {
    host_.run = [this](const io::Command& command) -> Result<io::ProcessExit> {
      commands_.push_back(command.str());
      const auto found = outputs_.find(command.program);
      if (found == outputs_.end()) return fail(ErrorCode::NotFound, "no " + command.program);
      return found->second;
    };
  }

  std::map<std::string, io::ProcessExit> outputs_;
  std::vector<std::string> commands_;
};

TEST_F(GpuChecks, goodGpusPassEveryCheckThatNeedsNvmlAlone) {
  for (const char* id :
       {"gpu.clocks", "gpu.ecc", "gpu.nvlink", "gpu.nvlink-ber", "gpu.pcie", "gpu.power",
        "gpu.remap", "gpu.retired", "gpu.stack", "gpu.temperature", "gpu.throttle", "gpu.vbios"}) {
    const auto verdict = check(id);
    EXPECT_EQ(verdict.status, CheckStatus::Pass) << id << ": " << verdict.text;
  }
}

TEST_F(GpuChecks, oneBadGpuFailsAndIsNamed) {
  struct Row {
    const char* id;
    json fault;
  };
  const std::vector<Row> rows = {
      {"gpu.clocks", {{"sm_mhz", 1200}}},
      {"gpu.ecc", {{"ecc", {{"uncorrected_volatile", 1}}}}},
      {"gpu.ecc", {{"ecc", {{"enabled", false}}}}},
      {"gpu.nvlink", {{"nvlinks_down", 1}}},
      {"gpu.nvlink", {{"nvlink_errors", 1}}},
      {"gpu.nvlink", {{"nvlinks", 0}}},
      {"gpu.nvlink", {{"nvlinks_down", 18}}},
      {"gpu.pcie", {{"pcie", {{"width", 8}}}}},
      {"gpu.pcie", {{"pcie", {{"max_generation", 4}}}}},
      {"gpu.pcie", {{"pcie", {{"replays", 81}}}}},
      {"gpu.power", {{"power_limit_w", 500}, {"power_default_w", 700}}},
      {"gpu.power", {{"power_limit_w", 500}}},
      {"gpu.remap", {{"remapped_rows", {{"failed", true}}}}},
      {"gpu.temperature", {{"temperature_c", 85}}},
      {"gpu.throttle", {{"throttle_reasons", 0x44}}},
      {"gpu.throttle", {{"violation_ns", {{"thermal", 11'000'000'000}}}}},
      {"gpu.vbios", {{"vbios", "96.00.00.00.00"}}},
      {"gpu.vbios", {{"inforom_valid", false}}},
      {"gpu.fabric", {{"fabric_state", 2}}},
      {"gpu.fabric", {{"fabric_state", 3}, {"fabric_health", 0x10}}},
      {"gpu.fabric", {{"fabric_state", 3}, {"fabric_health", 0x500}}},
      {"gpu.nvlink", {{"nvlink_generation", 5}, {"nvlink_errors", 1}}},
  };
  for (const auto& row : rows)
    EXPECT_EQ(with(row.id, row.fault), CheckStatus::Fail) << row.id << " " << row.fault;
  gpus_[1]["nvlinks_down"] = 2;
  EXPECT_NE(check("gpu.nvlink").text.find("(serial S1): 16 NVLinks are up, 18 expected"),
            std::string::npos)
      << check("gpu.nvlink").text;
}

TEST_F(GpuChecks, nvlinkFiveCountsInFieldValues) {
  EXPECT_EQ(with("gpu.nvlink", {{"nvlink_generation", 5}}), CheckStatus::Pass);
}

TEST(FabricHealth, isToldInWords) {
  EXPECT_EQ(fabricTroubleOf(0), "") << "an old driver says nothing";
  EXPECT_EQ(fabricTroubleOf(0x1aa), "") << "every answer is no, the configuration is right";
  EXPECT_EQ(fabricTroubleOf(0x1), "reduced bandwidth");
  EXPECT_EQ(fabricTroubleOf(0x50), "a route is unhealthy, recovering from an access timeout");
  EXPECT_EQ(fabricTroubleOf(0x400), "no partition");
  EXPECT_EQ(fabricTroubleOf(0xf00), "configured wrongly");
}

TEST_F(GpuChecks, powerCappingAndLowUseAreNoFault) {
  EXPECT_EQ(with("gpu.throttle",
                 {{"throttle_reasons", 0x4}, {"violation_ns", {{"power", 99'000'000'000}}}}),
            CheckStatus::Pass);
  EXPECT_EQ(with("gpu.throttle", {{"violation_ns", {{"reliability", 99'000'000'000}}}}),
            CheckStatus::Pass)
      << "a good chip at its highest clock is held by its voltage";
}

TEST_F(GpuChecks, whatIsNotThereIsNoData) {
  EXPECT_EQ(check("gpu.fabric").status, CheckStatus::NoData) << "no NVSwitch";
  for (auto& gpu : gpus_) gpu["fabric_state"] = 3;
  EXPECT_EQ(check("gpu.fabric").status, CheckStatus::Pass);
  EXPECT_EQ(check("gpu.stack").status, CheckStatus::NoData) << "an NVSwitch, but no Fabric Manager";
  gpus_.clear();
  EXPECT_EQ(check("gpu.pcie").status, CheckStatus::NoData);
}

TEST_F(GpuChecks, cardsWithoutNvlinkHaveNoFabricToRegisterWith) {
  for (auto& gpu : gpus_) gpu["name"] = "NVIDIA L40S", gpu["nvlinks"] = 0;
  const auto verdict = check("gpu.fabric");
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
}

/// The model's words are whole ones; a link that rests says at which generation.
TEST_F(GpuChecks, aModelIsNamedByWholeWords) {
  EXPECT_EQ(check("gpu.model", {{"model", "H100"}}).status, CheckStatus::Pass);
  EXPECT_EQ(check("gpu.model", {{"model", "NVIDIA H100 80GB"}}).status, CheckStatus::Pass);
  for (const char* other : {"H10", "100", "H100 80", "", "h100", "GH100"})
    EXPECT_EQ(check("gpu.model", {{"model", other}}).status, CheckStatus::Fail) << other;
  for (auto& gpu : gpus_) gpu["name"] = "NVIDIA GB200";
  EXPECT_EQ(check("gpu.model", {{"model", "B200"}}).status, CheckStatus::Fail);
  for (auto& gpu : gpus_) gpu["name"] = "NVIDIA H100 80GB HBM3", gpu["pcie"]["generation"] = 1;
  EXPECT_NE(check("gpu.pcie").text.find("at generation 1 at this moment"), std::string::npos)
      << check("gpu.pcie").text;
}

TEST_F(GpuChecks, anUnknownModelIsSaidToBeUnknown) {
  for (auto& gpu : gpus_) gpu["name"] = "NVIDIA X9", gpu["nvlinks"] = 4;
  const auto verdict = check("gpu.nvlink");
  EXPECT_EQ(verdict.status, CheckStatus::Pass);
  for (const char* id : {"gpu.nvlink", "gpu.pcie", "gpu.power"})
    EXPECT_NE(check(id).text.find("nothing was expected of it"), std::string::npos)
        << check(id).text;
  EXPECT_EQ(check("gpu.nvlink", {{"links", 6}}).status, CheckStatus::Fail)
      << "the gate may say what it expects";
}

TEST(GpuMemory, hasLimitsBeyondWhichAGpuIsReplaced) {
  GpuHealth gpu;
  EXPECT_EQ(evaluateRetired(gpu).status, CheckStatus::NoData);
  EXPECT_EQ(evaluateRemap(gpu).status, CheckStatus::NoData);
  gpu.retired = {.single_bit = 50, .double_bit = 9};
  EXPECT_EQ(evaluateRetired(gpu).status, CheckStatus::Pass);
  gpu.retired->double_bit = 10;
  EXPECT_EQ(evaluateRetired(gpu).status, CheckStatus::Fail);
  gpu.retired = {.pending = true};
  EXPECT_EQ(evaluateRetired(gpu).status, CheckStatus::Fail);
  gpu.remapped = {.correctable = 511};
  EXPECT_EQ(evaluateRemap(gpu).status, CheckStatus::Pass);
  gpu.remapped->uncorrectable = 1;
  EXPECT_EQ(evaluateRemap(gpu).status, CheckStatus::Fail);
}

TEST_F(GpuChecks, theStackMustFit) {
  gpus_[0]["fabric_state"] = gpus_[1]["fabric_state"] = 3;
  outputs_["nv-fabricmanager"] = {0, "Fabric Manager version is : 1.2.3\n", ""};
  EXPECT_EQ(check("gpu.stack").status, CheckStatus::Fail) << check("gpu.stack").text;
  outputs_["nv-fabricmanager"] = {0, "Fabric Manager version is : 0.0.0\n", ""};
  EXPECT_EQ(check("gpu.stack").status, CheckStatus::Pass) << check("gpu.stack").text;
  EXPECT_EQ(check("gpu.stack", {{"min_cuda", 99.0}}).status, CheckStatus::Fail);
}

json burnReport(const std::string& outcome, int devices = 2) {
  json report{{"format", "muster-burn/1"}, {"outcome", outcome}, {"devices", json::array()}};
  for (int i = 0; i < devices; ++i)
    report["devices"].push_back({{"place", "0000:01:00.0"},
                                 {"serial", "S"},
                                 {"outcome", outcome},
                                 {"stages",
                                  {{{"name", "gemm bf16 integer"},
                                    {"outcome", outcome},
                                    {"values", {{"gemm_bf16_gflops", 7.5e5}}}}}}});
  return report;
}

TEST_F(GpuChecks, aBurnPassesOnlyWhenEveryGpuHas) {
  EXPECT_EQ(check("gpu.burn").status, CheckStatus::Error) << "no such program";
  outputs_["muster-burn"] = {0, burnReport("pass").dump(), ""};
  const auto good = check("gpu.burn");
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_EQ(good.values.at("gpu1.gemm_bf16_gflops"), 7.5e5);
  EXPECT_NE(commands_.back().find("gemm_fp8_gflops=1262700"), std::string::npos)
      << "floors of the table: " << commands_.back();
  EXPECT_NE(commands_.back().find("gemm_tf32_gflops=335700"), std::string::npos);
  outputs_["muster-burn"] = {0, burnReport("pass", 1).dump(), ""};
  EXPECT_EQ(check("gpu.burn").status, CheckStatus::Fail) << "one of two GPUs";
  outputs_["muster-burn"] = {0, burnReport("fail").dump(), ""};
  EXPECT_EQ(check("gpu.burn").status, CheckStatus::Fail) << "exit 0 is no pass";
  outputs_["muster-burn"] = {3, burnReport("pass").dump(), "cannot be trusted"};
  EXPECT_EQ(check("gpu.burn").status, CheckStatus::Fail) << "nor is a report with another exit";
  outputs_["muster-burn"] = {0, "OK", ""};
  EXPECT_EQ(check("gpu.burn").status, CheckStatus::NoData);
}

TEST_F(GpuChecks, aGateThatNamesStagesKeepsTheirFloors) {
  outputs_["muster-burn"] = {0, burnReport("pass").dump(), ""};
  (void)check("gpu.burn");
  const auto usual = commands_.back();
  (void)check("gpu.burn", {{"stages", "gemm,memory,copy,units,caches,power"}});
  EXPECT_EQ(commands_.back(), usual) << "the same as nothing said";
  (void)check("gpu.burn", {{"stages", "memory"}});
  EXPECT_NE(commands_.back().find("--min memory_copy_gbytes_per_s="), std::string::npos)
      << commands_.back();
  EXPECT_EQ(commands_.back().find("gemm_bf16"), std::string::npos) << commands_.back();
  (void)check("gpu.burn", {{"stages", "units"}});
  EXPECT_EQ(commands_.back().find("--min "), std::string::npos) << commands_.back();
}

TEST_F(GpuChecks, aBurnDrawsPowerAndItsBitsAreKeptForTheFleet) {
  auto report = burnReport("pass");
  for (auto& gpu : report["devices"]) {
    gpu["library"] = "cuBLASLt 130100";
    gpu["stages"].push_back({{"name", "gemm bf16 random"},
                             {"outcome", "pass"},
                             {"reference", "00000000abcd0123456789"},
                             {"product", "n 16384, seed 6d"},
                             {"values", json::object()}});
  }
  outputs_["muster-burn"] = {0, report.dump(), ""};
  auto seen = check("gpu.burn");
  EXPECT_NE(
      commands_.back().find("--stage gemm,memory,copy,units,caches,power --min-power-share 0.75"),
      std::string::npos)
      << commands_.back();
  const std::string name = "gpu1.bits of gemm bf16 random (n 16384, seed 6d, cuBLASLt 130100)";
  ASSERT_TRUE(seen.values.contains(name)) << json(seen.values).dump(1);
  EXPECT_EQ(seen.values.at(name), 0xabcd);
  report["devices"][1]["stages"][1]["reference"] = "nonsense, not hex";
  report["devices"][0].erase("library");
  outputs_["muster-burn"] = {0, report.dump(), ""};
  for (const auto& [key, value] : check("gpu.burn").values)
    EXPECT_EQ(key.find("bits of"), std::string::npos) << key << " is comparable with nothing";
}

TEST_F(GpuChecks, aGroupsPartIsEvaluatedByItsRows) {
  const json job{
      {"group", "g7"},    {"meeting", "10.0.0.1:41000"},  {"ranks", 4},        {"first_rank", 2},
      {"local_ranks", 2}, {"operations", {"all-reduce"}}, {"min_bytes", 1024}, {"max_bytes", 1024}};
  json report{{"format", "muster-collective/1"},
              {"group", "g7"},
              {"passed", true},
              {"findings", json::array()},
              {"rows", json::array()}};
  for (int rank = 2; rank < 4; ++rank)
    report["rows"].push_back({{"rank", rank},
                              {"device", "d"},
                              {"operation", "all-reduce"},
                              {"bytes", 1024},
                              {"wrong", 0},
                              {"us", 1},
                              {"algbw_gbytes_per_s", 1},
                              {"busbw_gbytes_per_s", 1.5}});
  EXPECT_EQ(check("gpu.collective", job).status, CheckStatus::Error) << "no such program";
  outputs_["muster-collective"] = {0, report.dump(), ""};
  const auto good = check("gpu.collective", job);
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_EQ(good.values.at("rank3.all-reduce_busbw_gbytes_per_s"), 1.5);
  outputs_["muster-collective"] = {1, report.dump(), ""};
  EXPECT_EQ(check("gpu.collective", job).status, CheckStatus::Fail);
  report["rows"].erase(1);
  outputs_["muster-collective"] = {0, report.dump(), ""};
  EXPECT_EQ(check("gpu.collective", job).status, CheckStatus::Fail) << "rank 3 is missing";
  outputs_["muster-collective"] = {0, "", ""};
  EXPECT_EQ(check("gpu.collective", job).status, CheckStatus::NoData);
  EXPECT_EQ(check("gpu.collective").status, CheckStatus::Error) << "no job";
}

TEST(Skus, theBuiltInTableMakesSense) {
  EXPECT_GE(Skus::builtIn().all().size(), 28u);
  EXPECT_EQ(Skus::builtIn().find("NVIDIA H100 80GB HBM3")->name, "H100 SXM");
  EXPECT_EQ(Skus::builtIn().find("NVIDIA H200")->name, "H200");
  EXPECT_EQ(Skus::builtIn().find("NVIDIA X9"), nullptr);
  for (const char* other : {"NVIDIA H2000", "NVIDIA GH200 624GB", "NVIDIA B2000", "NVIDIA L400"})
    EXPECT_EQ(Skus::builtIn().find(other), nullptr) << other << " is another board";
  // As NVML names them; what one name is a part of is another board.
  const std::pair<const char*, const char*> boards[] = {
      {"NVIDIA A100-SXM4-40GB", "A100 SXM 40 GB"},
      {"NVIDIA A100-PCIE-40GB", "A100 PCIe 40 GB"},
      {"NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB"},
      {"NVIDIA A800-SXM4-80GB", "A800 SXM 80 GB"},
      {"NVIDIA H100 PCIe", "H100 PCIe"},
      {"NVIDIA H100 NVL", "H100 NVL"},
      {"NVIDIA H800", "H800 SXM"},
      {"NVIDIA H800 PCIe", "H800 PCIe"},
      {"NVIDIA H20", "H20"},
      {"NVIDIA H20-3e", "H20 141 GB"},
      {"NVIDIA H200 NVL", "H200 NVL"},
      {"NVIDIA GH200 480GB", "GH200 96 GB"},
      {"NVIDIA GB200", "GB200"},
      {"NVIDIA B300 SXM6 AC", "B300"},
      {"NVIDIA GB300", "GB300"},
      {"NVIDIA L40", "L40"},
      {"NVIDIA L40S", "L40S"},
      {"AMD Instinct MI325X", "MI325X"},
      {"AMD Instinct MI355X", "MI355X"}};
  for (const auto& [model, name] : boards) {
    const auto* sku = Skus::builtIn().find(model);
    ASSERT_TRUE(sku) << model;
    EXPECT_EQ(sku->name, name);
  }
  EXPECT_EQ(Skus::builtIn().find("NVIDIA A100-SXM4-80GB")->name, "A100 SXM 80 GB");
  EXPECT_EQ(Skus::builtIn().find("AMD Instinct MI300X")->name, "MI300X");
  EXPECT_EQ(Skus::builtIn().find("NVIDIA B200")->name, "B200");
}

// Figures from memory may bound a floor of the table; nothing on a node is evaluated by them.
TEST(Skus, nothingIsEvaluatedByAFigureWithoutASource) {
  for (const auto& sku : Skus::builtIn().all())
    for (const auto& [key, expected] : sku.expect) {
      EXPECT_FALSE(expected.source.empty()) << sku.name << " " << key;
      if (expected.source.starts_with("unsourced"))
        EXPECT_NE(key.find("_peak_"), std::string::npos) << sku.name << " " << key;
    }
}

std::string skuTable(const std::string& expect) {
  return R"({"format":"muster-skus/1","skus":[{"name":"H200","match":["H200"],"expect":{)" +
         expect + "}}]}";
}
std::string hbm(const std::string& floor) {
  return skuTable(
      R"("hbm_peak_gbytes_per_s":{"value":4800,"source":"sheet"},"hbm_min_gbytes_per_s":{"value":)" +
      floor + R"(,"source":"measured"})");
}

TEST(Skus, aFloorInAnotherUnitIsRefused) {  // DCGM's H200 entry stores 2333 among MB/s: a floor
                                            // of 2.3 GB/s
  EXPECT_TRUE(Skus::parse(hbm("2333")));
  EXPECT_NE(Skus::parse(hbm("2.333")).error().str().find("another unit"), std::string::npos);
  EXPECT_FALSE(Skus::parse(hbm("2333000")));
  EXPECT_NE(Skus::parse(hbm("500")).error().str().find("third"), std::string::npos)
      << "ten times too low";
  EXPECT_FALSE(Skus::parse(hbm("4801"))) << "more than the peak";
}
TEST(Skus, whatHasNoSourceOrNoSenseIsRefused) {
  EXPECT_NE(Skus::parse(skuTable(R"("nvlinks":{"value":18})")).error().str().find("no source"),
            std::string::npos);
  EXPECT_NE(
      Skus::parse(skuTable(R"("nvlinkz":{"value":18,"source":"x"})")).error().str().find("no key"),
      std::string::npos);
  EXPECT_NE(Skus::parse(skuTable(R"("hbm_min_gbytes_per_s":{"value":2000,"source":"x"})"))
                .error()
                .str()
                .find("beside it"),
            std::string::npos);
  EXPECT_FALSE(Skus::parse(skuTable(R"("nvlinks":{"value":"many","source":"x"})")));
  EXPECT_FALSE(Skus::parse("{}"));
  EXPECT_FALSE(Skus::parse("nonsense"));
}

TEST(PeerBaselines, needEnoughNodesAndAreStated) {
  std::vector<double> values(kLeastSamples - 1, 100);
  EXPECT_FALSE(baselineFrom(values));
  values.push_back(std::nan(""));
  EXPECT_FALSE(baselineFrom(values)) << "no number is no sample";
  values.back() = 40;
  const auto baselines = baselineFrom(values);
  ASSERT_TRUE(baselines);
  EXPECT_EQ(baselines->median, 100);
  EXPECT_EQ(baselines->floor, 95)
      << "a fleet without spread still gets 5 %; the slow node does not lower the floor";
}

}  // namespace
}  // namespace muster::validate
