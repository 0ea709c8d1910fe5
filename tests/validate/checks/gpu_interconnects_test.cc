// SPDX-License-Identifier: Apache-2.0
// Chip-to-chip links and NVSwitches. The output of `nvidia-smi c2c -s` is that of a GH200 as
// dmlc/xgboost's tests (tests/cpp/common/test_cuda_dr_utils.cc) have it; the switch's file is what
// procfs_nvswitch.c of open-gpu-kernel-modules prints.
#include "tests/validate/fake_host.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using wire::CheckStatus;

std::string gh200(int number, int links = 10, const std::string& last = "44.712 GB/s") {
  std::string text =
      fmt::format("GPU {}: NVIDIA GH200 480GB (UUID: GPU-00000000-0000-0000-0000-00000000000{})\n",
                  number, number);
  for (int link = 0; link < links; ++link)
    text += fmt::format("    C2C Link {}: {}\n", link, link + 1 < links ? "44.712 GB/s" : last);
  return text;
}

class GpuInterconnects : public FakeHost {
 protected:
  Verdict c2c(const std::string& output, nlohmann::json params = nlohmann::json::object(),
              int code = 0) {
    outputs_["nvidia-smi c2c"] = {code, output, ""};
    return check("gpu.c2c", params);
  }
  void addSwitch(const std::string& place, const std::string& version) {
    write("proc/driver/nvidia-nvswitch/devices/" + place + "/information",
          "BIOS Version: " + version +
              "\nUUID: SWX-8A4F2E31-7B1D-0C5E-93D2-6E0F4A1B2C3D\nPhysical location ID: 0001");
  }
};

TEST_F(GpuInterconnects, everyC2cLinkUpAtOneRatePasses) {
  const auto verdict = c2c(gh200(0) + gh200(1), {{"gpus", 2}, {"links", 10}});
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_EQ(verdict.values.at("links"), 10);
  EXPECT_DOUBLE_EQ(verdict.values.at("link_gbytes_per_s"), 44.712);
}

TEST_F(GpuInterconnects, aC2cLinkThatIsDownSlowOrMissingNamesItsGpu) {
  const auto down = c2c(gh200(0) + gh200(1, 10, "<inactive>"));
  EXPECT_EQ(down.status, CheckStatus::Fail);
  EXPECT_THAT(down.text, AllOf(HasSubstr("GPU 1: "), HasSubstr("9 of 10 C2C links are up"),
                               HasSubstr("C2C Link 9: <inactive>")));
  EXPECT_EQ(c2c(gh200(0) + gh200(1, 9)).status, CheckStatus::Fail);
  EXPECT_EQ(c2c(gh200(0, 9) + gh200(1, 9), {{"links", 10}}).status, CheckStatus::Fail);
  EXPECT_THAT(c2c(gh200(0) + gh200(1, 10, "22.356 GB/s")).text, HasSubstr("at 22.356 GB/s"));
  EXPECT_EQ(c2c(gh200(0, 10, "nan GB/s")).status, CheckStatus::Fail);
  EXPECT_EQ(c2c(gh200(0, 0)).status, CheckStatus::Fail);
}

TEST_F(GpuInterconnects, anotherAnswerIsNoPass) {
  for (const char* text : {"", "No Devices support C2C.\n", "    C2C Link 0: 44.712 GB/s\n",
                           "NVIDIA-SMI has failed because it couldn't communicate\n"})
    EXPECT_EQ(c2c(text).status, CheckStatus::NoData) << text;
  EXPECT_EQ(c2c(gh200(0), {{"gpus", 2}}).status, CheckStatus::NoData) << "one of two";
  EXPECT_EQ(c2c(gh200(0) + gh200(0), {{"gpus", 2}}).status, CheckStatus::NoData) << "one, twice";
  EXPECT_EQ(c2c(gh200(0) + "    C2C Link 0: 44.712 GB/s\n").status, CheckStatus::NoData)
      << "a link, twice";
  EXPECT_EQ(c2c(gh200(0), nlohmann::json::object(), 15).status, CheckStatus::NoData);
}

TEST_F(GpuInterconnects, allSwitchesOfABoardWithOneFirmwarePass) {
  for (const char* place : {"0000:05:00.0", "0000:06:00.0", "0000:07:00.0", "0000:08:00.0"})
    addSwitch(place, "96.10.57.00.01");
  EXPECT_EQ(check("gpu.nvswitch", {{"switches", 4}}).status, CheckStatus::Pass);
  EXPECT_EQ(check("gpu.nvswitch", {{"switches", 4}, {"firmware", "96.10.57.00.01"}}).status,
            CheckStatus::Pass);
  EXPECT_THAT(check("gpu.nvswitch", {{"switches", 4}, {"firmware", "96.10.6D.00.01"}}).text,
              HasSubstr("expected 96.10.6D.00.01"));
  EXPECT_EQ(check("gpu.nvswitch").status, CheckStatus::NoData);
  addSwitch("0000:08:00.0", "96.10.55.00.01");
  EXPECT_THAT(check("gpu.nvswitch", {{"switches", 4}}).text, HasSubstr("their firmware differs"));
  addSwitch("0000:08:00.0", "N/A");
  EXPECT_EQ(check("gpu.nvswitch", {{"switches", 4}}).status, CheckStatus::Fail);
  EXPECT_THAT(check("gpu.nvswitch", {{"switches", 6}}).text, HasSubstr("4 NVSwitches, 6 expected"));
}

TEST_F(GpuInterconnects, switchesThatAreNotThereFailUnlessTheyAreAHosts) {
  EXPECT_EQ(check("gpu.nvswitch", {{"switches", 4}}).status, CheckStatus::Fail);
  write("proc/cpuinfo", "flags\t\t: fpu vme aes hypervisor lahf_lm");
  EXPECT_EQ(check("gpu.nvswitch", {{"switches", 4}}).status, CheckStatus::Pass);
  addSwitch("0000:05:00.0", "96.10.57.00.01");
  EXPECT_EQ(check("gpu.nvswitch", {{"switches", 4}}).status, CheckStatus::Fail)
      << "a machine that has one has all";
}

}  // namespace
}  // namespace muster::validate
