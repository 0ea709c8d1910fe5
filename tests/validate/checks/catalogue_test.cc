// SPDX-License-Identifier: Apache-2.0
// Checks: the engines see injected faults, and whatever cannot be known has not passed.
#include "base/io/crypto.h"
#include "validate/checks/check_params.h"
#include "validate/checks/check_row.h"
#include "validate/checks/rdma_devices.h"
#include "validate/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::validate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using wire::CheckStatus;

wire::CheckResult run(std::string id, std::string params,
                      std::chrono::seconds deadline = std::chrono::seconds(60)) {
  return runChecks({{std::move(id), std::move(params), deadline}}).front();
}

TEST(Checks, anUnknownCheckIsAnError) {
  EXPECT_EQ(run("host.nonsense", "{}").status, CheckStatus::Error);
}
TEST(Checks, parametersThatAreNoObjectAreAnError) {
  EXPECT_EQ(run("host.gemm", "[1").status, CheckStatus::Error);
}
TEST(Checks, aParameterOfTheWrongTypeIsAnError) {
  EXPECT_EQ(run("host.gemm", R"({"n":"many"})").status, CheckStatus::Error);
}
/// Whoever reads it knows the gate, not the library that parses JSON.
TEST(Checks, aWrongParameterIsNamedInWordsOfOurs) {
  const auto textOf = [](const char* id, const char* params) {
    const auto result = run(id, params);
    EXPECT_EQ(result.status, CheckStatus::Error) << id << params << result.text;
    EXPECT_THAT(result.text, Not(HasSubstr("exception"))) << id << params;
    return result.text;
  };
  EXPECT_EQ(textOf("host.gemm", R"({"n":"many"})"),
            R"(n is "many", and it must be a number, zero or more)");
  EXPECT_EQ(textOf("host.gemm", R"({"n":-8})"), "n is -8, and it must be a number, zero or more");
  EXPECT_THAT(textOf("host.memory", R"({"mebibytes":1e300})"), HasSubstr("mebibytes is 1e+300"));
  EXPECT_EQ(textOf("rdma.count", "{}"), "the parameter count is missing");
  EXPECT_EQ(textOf("gpu.model", R"({"model":100})"), "model is 100, and it must be text");
  EXPECT_EQ(textOf("gpu.count", R"({"count":7.5})"),
            "count is 7.5, and it must be a whole number, zero or more");
  EXPECT_EQ(textOf("rdma.ports", R"({"devices":["mlx5_0"]})"),
            R"(devices is ["mlx5_0"], and it must be an object)");
  EXPECT_THAT(textOf("gpu.nccl-tests", R"({"min_busbw":300})"),
              HasSubstr("does not know the parameter min_busbw"))
      << "a floor whose name is mistyped would be none";
  for (const char* level : {"0", "5", "1.5", "-1", "\"3\""})
    EXPECT_THAT(textOf("gpu.dcgm", fmt::format(R"({{"level":{},"gpus":8}})", level).c_str()),
                HasSubstr("level is "))
        << level;
}

TEST(Checks, everyParameterOfEveryCheckIsHeldToItsKind) {
  std::size_t tried = 0;
  for (const auto& row : catalogue())
    for (const auto& [name, word] : paramsOf(row.takes)) {
      const std::string key(name == "*" ? "governor" : name);
      const auto wrong = wrongParams(row, {{key, nlohmann::json::array()}});
      EXPECT_THAT(wrong, HasSubstr(key + " is [], and it must be")) << row.id;
      const auto right = wrongParams(row, {{key, word ? nlohmann::json("a") : nlohmann::json(1)}});
      EXPECT_THAT(right, Not(HasSubstr(key))) << row.id;
      ++tried;
    }
  EXPECT_GT(tried, 50u);
}

TEST(Checks, aSizeThatTheHostCannotDoIsAnError) {
  EXPECT_EQ(run("host.gemm", R"({"n":100,"seconds":0})").status, CheckStatus::Error);
}
TEST(Checks, aGoodHostPassesWithItsRate) {
  const auto gemm = run("host.gemm", R"({"n":128,"seconds":0})");
  EXPECT_EQ(gemm.status, CheckStatus::Pass) << gemm.text;
  EXPECT_GT(gemm.values.at("gemm_gflops"), 0);
  EXPECT_GT(gemm.values.at("products"), 0);
  const auto memory = run("host.memory", R"({"mebibytes":1,"seconds":5})");
  EXPECT_EQ(memory.status, CheckStatus::Pass) << memory.text;
}
TEST(Checks, aSlowHostFails) {
  EXPECT_EQ(run("host.gemm", R"({"n":128,"seconds":0,"min_gflops":1e9})").status,
            CheckStatus::Fail);
}
TEST(Checks, aTcpPairWithNobodyThereIsATimeout) {
  EXPECT_EQ(
      runRdmaPair(
          R"({"engine":"tcp","role":"client","peer":"127.0.0.1","port":1,"min_gbits":1,"limit_seconds":1})")
          .status,
      CheckStatus::Timeout);
  EXPECT_EQ(runRdmaPair(R"({"engine":"tcp","role":"client","port":1})").status, CheckStatus::Error);
}
TEST(Checks, anUnfinishedMemoryTestIsNoPass) {
  EXPECT_EQ(run("host.memory", R"({"mebibytes":256,"seconds":0})").status, CheckStatus::Timeout);
}
TEST(Checks, memoryOnASlowHostPassesAndIsToldAsSlow) {
  const auto slow = run("host.memory", R"({"mebibytes":64,"seconds":0.001,"limit_seconds":600})");
  EXPECT_EQ(slow.status, CheckStatus::Pass) << slow.text;
  EXPECT_NE(slow.text.find("slow: the first round took"), std::string::npos) << slow.text;
  EXPECT_NE(slow.text.find("GB/s"), std::string::npos) << slow.text;
}
TEST(Checks, whereTimeWasShortNobodyIsAskedToSwapParts) {
  EXPECT_NE(adviceFor("host.memory", CheckStatus::Fail).find("DIMM"), std::string_view::npos);
  EXPECT_EQ(adviceFor("host.memory", CheckStatus::Timeout).find("DIMM"), std::string_view::npos);
}
TEST(Checks, aPassAfterTheDeadlineIsNoPass) {
  EXPECT_EQ(run("host.gemm", R"({"n":128,"seconds":0.05})", std::chrono::seconds(0)).status,
            CheckStatus::Timeout);
}

TEST(Checks, withoutNvmlThereIsNoData) {
  setenv("MUSTER_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
  for (const char* id : {"gpu.ecc", "gpu.remap", "gpu.throttle"})
    EXPECT_EQ(run(id, "{}").status, CheckStatus::NoData) << id;
  EXPECT_EQ(run("gpu.count", R"({"count":0})").status, CheckStatus::NoData);
  unsetenv("MUSTER_NVML");
}

TEST(Checks, everyRowSaysWhatToDo) {
  for (const auto& row : catalogue()) {
    EXPECT_FALSE(row.advice.empty() || row.what.empty() || row.needs.empty() ||
                 row.source.empty() || row.group.empty())
        << row.id;
    EXPECT_EQ(findCheck(row.id), &row);
  }
  EXPECT_TRUE(std::is_sorted(catalogue().begin(), catalogue().end(),
                             [](const auto& a, const auto& b) { return a.id < b.id; }));
}

TEST(RdmaCount, neitherFewerNorMore) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("muster-rdma-" + io::randomToken(6));
  EXPECT_EQ(countRdmaDevices(folder, 1).status, CheckStatus::Fail) << "no driver, no device";
  std::filesystem::create_directories(folder / "mlx5_0");
  std::filesystem::create_directories(folder / "mlx5_1");
  EXPECT_EQ(countRdmaDevices(folder, 2).status, CheckStatus::Pass);
  EXPECT_EQ(countRdmaDevices(folder, 3).text, "2 RDMA NICs seen, 3 expected");
  EXPECT_EQ(countRdmaDevices(folder, 1).status, CheckStatus::Fail);
  EXPECT_EQ(run("rdma.count", "{}").status, CheckStatus::Error) << "a count that is not named";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster::validate
