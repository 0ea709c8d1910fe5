// SPDX-License-Identifier: Apache-2.0
// The simulated NVML through dlopen, as every caller uses it.
#include "lab/nvml/abi.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <cstdlib>

namespace muster::lab {
namespace {

class SimNvml : public testing::Test {
 protected:
  SimNvml()
      : config_(testing::TempDir() + "sim-nvml-" +
                testing::UnitTest::GetInstance()->current_test_info()->name() + ".json") {
    library_ =
        ::dlopen((test::binFolder() / "../lib/libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    ::setenv("MUSTER_SIM_NVML_CONFIG", config_.c_str(), 1);
  }
  ~SimNvml() override {
    if (library_) ::dlclose(library_);
    std::filesystem::remove(config_);
  }
  void SetUp() override { ASSERT_NE(library_, nullptr) << ::dlerror(); }

  template <class... Params, class... Args>
  nvmlReturn_t callAs(const char* name, Args... args) {
    auto* function = reinterpret_cast<nvmlReturn_t (*)(Params...)>(::dlsym(library_, name));
    EXPECT_NE(function, nullptr) << name;
    return function ? function(args...) : NVML_ERROR_UNKNOWN;
  }
  nvmlReturn_t open(const std::string& config) {
    EXPECT_TRUE(io::writeFileAtomic(config_, config));
    return callAs<>("nvmlInit_v2");
  }
  nvmlDevice_t gpu(unsigned index) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ((callAs<unsigned, nvmlDevice_t*>("nvmlDeviceGetHandleByIndex_v2", index, &device)),
              NVML_SUCCESS);
    return device;
  }

  std::string config_;
  void* library_ = nullptr;
};

TEST_F(SimNvml, tellsWhatTheFileDescribes) {
  ASSERT_EQ(
      open(
          R"({"gpus":[{"serial":"1650001","uuid":"GPU-a","bus_id":"00000000:1B:00.0","memory_mib":81559},{"serial":"1650002"}]})"),
      NVML_SUCCESS);
  unsigned count = 0;
  EXPECT_EQ(callAs<unsigned*>("nvmlDeviceGetCount_v2", &count), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  char text[96] = {};
  EXPECT_EQ((callAs<nvmlDevice_t, char*, unsigned>("nvmlDeviceGetSerial", gpu(1), text, 96u)),
            NVML_SUCCESS);
  EXPECT_STREQ(text, "1650002");
  EXPECT_EQ((callAs<nvmlDevice_t, char*, unsigned>("nvmlDeviceGetName", gpu(0), text, 4u)),
            NVML_ERROR_INSUFFICIENT_SIZE);
  nvmlPciInfo_t pci{};
  EXPECT_EQ((callAs<nvmlDevice_t, nvmlPciInfo_t*>("nvmlDeviceGetPciInfo_v3", gpu(0), &pci)),
            NVML_SUCCESS);
  EXPECT_EQ(pci.bus, 0x1bu);
  nvmlMemory_t memory{};
  EXPECT_EQ((callAs<nvmlDevice_t, nvmlMemory_t*>("nvmlDeviceGetMemoryInfo", gpu(0), &memory)),
            NVML_SUCCESS);
  EXPECT_EQ(memory.total, 81559ull << 20);
  EXPECT_EQ(callAs<char*>("nvmlSystemGetDriverVersion", nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(callAs<>("nvmlShutdown"), NVML_SUCCESS);
  EXPECT_EQ(callAs<unsigned*>("nvmlDeviceGetCount_v2", &count), NVML_ERROR_UNINITIALIZED);
}

TEST_F(SimNvml, showsInjectedFaults) {
  ASSERT_EQ(
      open(
          R"({"gpus":[{"ecc":{"uncorrected_volatile":3},"remapped_rows":{"uncorrectable":1,"pending":true},"throttle_reasons":8,
                              "violation_ns":{"thermal":7},"nvlinks_down":1},{}]})"),
      NVML_SUCCESS);
  unsigned long long errors = 0, reasons = 0;
  EXPECT_EQ((callAs<nvmlDevice_t, int, int, unsigned long long*>(
                "nvmlDeviceGetTotalEccErrors", gpu(0), NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                NVML_VOLATILE_ECC, &errors)),
            NVML_SUCCESS);
  EXPECT_EQ(errors, 3u);
  unsigned correctable = 9, uncorrectable = 0, pending = 0, failed = 9;
  EXPECT_EQ(
      (callAs<nvmlDevice_t, unsigned*, unsigned*, unsigned*, unsigned*>(
          "nvmlDeviceGetRemappedRows", gpu(0), &correctable, &uncorrectable, &pending, &failed)),
      NVML_SUCCESS);
  EXPECT_EQ(std::tuple(correctable, uncorrectable, pending, failed), std::tuple(0u, 1u, 1u, 0u));
  EXPECT_EQ((callAs<nvmlDevice_t, unsigned long long*>("nvmlDeviceGetCurrentClocksThrottleReasons",
                                                       gpu(0), &reasons)),
            NVML_SUCCESS);
  EXPECT_EQ(reasons, 8u);
  nvmlViolationTime_t violation{};
  EXPECT_EQ((callAs<nvmlDevice_t, int, nvmlViolationTime_t*>("nvmlDeviceGetViolationStatus", gpu(0),
                                                             NVML_PERF_POLICY_THERMAL, &violation)),
            NVML_SUCCESS);
  EXPECT_EQ(violation.violationTime, 7u);
  int active = 9;
  EXPECT_EQ(
      (callAs<nvmlDevice_t, unsigned, int*>("nvmlDeviceGetNvLinkState", gpu(0), 17u, &active)),
      NVML_SUCCESS);
  EXPECT_EQ(active, NVML_FEATURE_DISABLED);
  callAs<>("nvmlShutdown");
}

TEST_F(SimNvml, aLostGpuAnswersNothing) {
  ASSERT_EQ(open(R"({"gpus":[{"lost":true}]})"), NVML_SUCCESS);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ((callAs<unsigned, nvmlDevice_t*>("nvmlDeviceGetHandleByIndex_v2", 0u, &device)),
            NVML_ERROR_GPU_IS_LOST);
  callAs<>("nvmlShutdown");
}

TEST_F(SimNvml, withoutAUsableFileThereIsNoDriver) {
  EXPECT_EQ(callAs<>("nvmlInit_v2"), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_EQ(open("not json"), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(open(R"({"gpus":[{"temperature_c":"hot"}]})"), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(open(R"({"driver_not_loaded":true})"), NVML_ERROR_DRIVER_NOT_LOADED);
}

class SimNvidiaSmi : public SimNvml {
 protected:
  Result<std::string> smi(std::vector<std::string> args) {
    io::Command command;
    command.program = (test::binFolder() / "../lib/nvidia-smi").string();
    command.args = std::move(args);
    command.env = {{"MUSTER_SIM_NVML_CONFIG", config_}};
    return io::runChecked(command);
  }
  unsigned long long volatileErrors(unsigned index) {
    unsigned long long count = 99;
    EXPECT_EQ((callAs<nvmlDevice_t, int, int, unsigned long long*>(
                  "nvmlDeviceGetTotalEccErrors", gpu(index), NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                  NVML_VOLATILE_ECC, &count)),
              NVML_SUCCESS);
    return count;
  }
};

TEST_F(SimNvidiaSmi, aResetHealsWhatAResetHealsAndRefusesWhatIsInUse) {
  const std::string two =
      R"({"gpus":[{"bus_id":"00000000:18:00.0","ecc":{"uncorrected_volatile":3,"uncorrected_aggregate":3}},
                                      {"bus_id":"00000000:3B:00.0","ecc":{"uncorrected_volatile":5},"processes":[{"pid":4711,"name":"python"}]}]})";
  ASSERT_EQ(open(two), NVML_SUCCESS);
  EXPECT_EQ(volatileErrors(0), 3u);
  EXPECT_EQ(*smi({"--query-gpu=index,pci.bus_id", "--format=csv,noheader"}),
            "0, 00000000:18:00.0\n1, 00000000:3B:00.0\n");
  EXPECT_EQ(*smi({"--query-compute-apps=gpu_bus_id,pid,process_name", "--format=csv,noheader"}),
            "00000000:3B:00.0, 4711, python\n");
  EXPECT_FALSE(smi({"--gpu-reset"})) << "one of all is in use";
  ASSERT_TRUE(smi({"--gpu-reset", "-i", "0"}));
  callAs<>("nvmlShutdown");
  ASSERT_EQ(callAs<>("nvmlInit_v2"), NVML_SUCCESS);
  EXPECT_EQ(volatileErrors(0), 0u);
  EXPECT_EQ(volatileErrors(1), 5u);
  callAs<>("nvmlShutdown");
}

}  // namespace
}  // namespace muster::lab
