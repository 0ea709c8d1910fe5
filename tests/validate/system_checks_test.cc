// Checks of the machine over a folder that looks like one, and over programs that say what they are told to.
#include "validate/checks/amd.h"
#include "validate/checks/rdma_count.h"
#include "validate/checks/system_judges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

namespace muster::validate {
namespace {

using agent::CheckStatus;
using nlohmann::json;

class SystemChecks : public testing::Test {
 protected:
  SystemChecks() {
    host_.root = std::filesystem::temp_directory_path() / fmt::format("muster-system-{}-{}", ::getpid(), testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(host_.root);
    host_.run = [this](const io::Command& command) -> Result<io::ProcessExit> {
      const auto key = command.program + (command.args.empty() ? "" : " " + command.args.front());
      for (const auto& name : {key, command.program})
        if (const auto found = outputs_.find(name); found != outputs_.end()) return found->second;
      return fail(ErrorCode::NotFound, "no " + command.program);
    };
  }
  ~SystemChecks() override { std::filesystem::remove_all(host_.root); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((host_.root / file).parent_path());
    std::ofstream(host_.root / file) << text << "\n";
  }
  Verdict check(std::string_view id, json params = json::object()) { return runCheck(*findCheck(id), params, host_); }

  Host host_;
  std::map<std::string, io::ProcessExit> outputs_;
};

TEST_F(SystemChecks, anUnreadableOrEmptyLogIsNoData) {
  EXPECT_EQ(check("system.kernel-log").status, CheckStatus::NoData);
  outputs_["dmesg"] = {1, "", "Operation not permitted"};
  EXPECT_EQ(check("system.kernel-log").status, CheckStatus::NoData);
  outputs_["dmesg"] = {0, "", ""};
  EXPECT_EQ(check("gpu.xid").status, CheckStatus::NoData);
}

TEST_F(SystemChecks, theLogTellsOfHardware) {
  outputs_["dmesg"] = {0, "[    0.0] Linux version 6.1\n[    1.0] usb 1-1: new device\n", ""};
  EXPECT_EQ(check("system.kernel-log").status, CheckStatus::Pass);
  EXPECT_EQ(check("gpu.xid").status, CheckStatus::Pass);
  outputs_["dmesg"].out += "[    9.1] mce: [Hardware Error]: CPU 4: Machine Check: 0\n";
  EXPECT_EQ(check("system.kernel-log").status, CheckStatus::Fail);
}

TEST(Xids, jobsAreNoReasonButTheRestIs) {
  EXPECT_TRUE(xidsIn("[1.0] NVRM: Xid (PCI:0000:18:00): 31, pid=77, MMU Fault\n").empty());
  EXPECT_EQ(xidsIn("[1.0] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n").size(), 1u);
  EXPECT_EQ(xidsIn("NVRM: Xid (PCI:0000:18:00): 64\nNVRM: Xid (PCI:0000:19:00): 95\n").size(), 2u);
  EXPECT_EQ(xidsIn("NVRM: Xid (PCI:0000:18:00): what\n").size(), 1u) << "one that cannot be read is not a good one";
  EXPECT_EQ(xidsIn("NVRM: Xid (PCI:0000:18:00\n").size(), 1u);
}

TEST(Clocks, mustBeSynchronisedAndBounded) {
  EXPECT_EQ(judgeClock({true, 3}, 100).status, CheckStatus::Pass);
  EXPECT_EQ(judgeClock({true, 101}, 100).status, CheckStatus::Fail);
  EXPECT_EQ(judgeClock({false, 0}, 100).status, CheckStatus::Fail);
  EXPECT_EQ(judgeClock({true, std::nan("")}, 100).status, CheckStatus::Fail);
  EXPECT_TRUE(clockState());
}

TEST_F(SystemChecks, dimmsNeedEdacAndNoUncorrectedError) {
  EXPECT_EQ(check("system.dimms").status, CheckStatus::NoData);
  write("sys/devices/system/edac/mc/mc0/ce_count", "3");
  EXPECT_EQ(check("system.dimms").status, CheckStatus::NoData) << "half an answer";
  write("sys/devices/system/edac/mc/mc0/ue_count", "0");
  write("sys/devices/system/edac/mc/mc0/dimm3/dimm_label", "CPU0_DIMM_D1");
  EXPECT_EQ(check("system.dimms").status, CheckStatus::Pass);
  EXPECT_EQ(check("system.dimms", {{"max_corrected", 2}}).status, CheckStatus::Fail);
  write("sys/devices/system/edac/mc/mc0/dimm3/dimm_ue_count", "1");
  EXPECT_NE(check("system.dimms").text.find("CPU0_DIMM_D1"), std::string::npos);
}

TEST_F(SystemChecks, numaNodesHaveMemoryAndDevicesAPlace) {
  EXPECT_EQ(check("system.numa").status, CheckStatus::NoData);
  write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  1000 kB");
  write("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:  1000 kB");
  write("sys/bus/pci/devices/0000:18:00.0/class", "0x030200");
  write("sys/bus/pci/devices/0000:18:00.0/numa_node", "1");
  EXPECT_EQ(check("system.numa").status, CheckStatus::Pass);
  write("sys/bus/pci/devices/0000:18:00.0/numa_node", "-1");
  EXPECT_EQ(check("system.numa").status, CheckStatus::Fail);
  write("sys/bus/pci/devices/0000:18:00.0/numa_node", "1");
  write("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:  0 kB");
  EXPECT_EQ(check("system.numa").status, CheckStatus::Fail) << "a socket without memory";
}

TEST_F(SystemChecks, knobsAreJudgedWhereTheyAre) {
  EXPECT_EQ(check("system.knobs").status, CheckStatus::NoData);
  write("proc/sys/kernel/numa_balancing", "0");
  EXPECT_EQ(check("system.knobs").status, CheckStatus::Pass);
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  EXPECT_EQ(check("system.knobs").status, CheckStatus::Fail);
  EXPECT_EQ(check("system.knobs", {{"governor", "powersave"}}).status, CheckStatus::Pass);
  EXPECT_EQ(check("system.knobs", {{"governor", "powersave"}, {"smt", "0"}}).status, CheckStatus::NoData) << "asked for, and not there";
  EXPECT_EQ(check("system.knobs", {{"turbo", "1"}}).status, CheckStatus::Error);
}

std::string fio(double bytes, int error = 0) { return json{{"jobs", {{{"error", error}, {"read", {{"bw_bytes", bytes}}}}}}}.dump(); }

TEST(Fio, readsBytesAndNothingElse) {
  EXPECT_DOUBLE_EQ(*parseFioRead(fio(3e9)), 3000);
  EXPECT_FALSE(parseFioRead(fio(0)));
  EXPECT_FALSE(parseFioRead(fio(3e9, 5)));
  for (const char* text : {"", "{}", R"({"jobs":[]})", R"({"jobs":[{"error":0,"read":{"bw":3000}}]})", R"({"jobs":[{"read":{"bw_bytes":1}}]})"}) EXPECT_FALSE(parseFioRead(text)) << text;
}

TEST_F(SystemChecks, disksAreReadOnlyAndComparedWithTheirLike) {
  EXPECT_EQ(check("disk.read").status, CheckStatus::NoData) << "no NVMe disk";
  write("sys/block/nvme0n1/device/model", "SSD X");
  EXPECT_EQ(check("disk.read").status, CheckStatus::Error) << "no fio";
  outputs_["fio"] = {0, fio(3e9), ""};
  EXPECT_EQ(check("disk.read").status, CheckStatus::Pass);
  EXPECT_EQ(check("disk.read", {{"min_mbytes_per_s", 5000}}).status, CheckStatus::Fail);
  outputs_["fio"] = {1, fio(3e9), "io error"};
  EXPECT_EQ(check("disk.read").status, CheckStatus::NoData);
  EXPECT_EQ(slowerThanTheirLike({{"a", 3000}, {"b", 3100}, {"c", 2000}}).size(), 1u);
  EXPECT_TRUE(slowerThanTheirLike({{"a", 3000}, {"b", 10}}).empty()) << "of two nobody knows which is right";
}

TEST_F(SystemChecks, rdmaPortsAreActiveFastAndClean) {
  EXPECT_EQ(check("rdma.ports").status, CheckStatus::NoData);
  write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  write("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)");
  write("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "0");
  EXPECT_EQ(check("rdma.ports", {{"min_gbits", 400}}).status, CheckStatus::Pass);
  write("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "7");
  EXPECT_EQ(check("rdma.ports").status, CheckStatus::Fail);
  EXPECT_EQ(check("rdma.ports", {{"max_errors", 10}, {"min_gbits", 400}}).status, CheckStatus::Pass);
  write("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  write("sys/class/infiniband/mlx5_1/ports/1/rate", "400 Gb/sec (4X NDR)");
  EXPECT_EQ(check("rdma.ports", {{"max_errors", 10}}).status, CheckStatus::Fail) << "the second one too";
}

constexpr const char* kAmdStatic = R"([{"gpu":0,"asic":{"market_name":"AMD Instinct MI300X","asic_serial":"0xA1"},"bus":{"bdf":"0000:05:00.0"}}])";
std::string amdMetric(const std::string& uncorrectable, const std::string& hotspot) {
  return R"([{"gpu":0,"ecc":{"total_correctable_count":0,"total_uncorrectable_count":)" + uncorrectable + R"(},"temperature":{"hotspot":{"value":)" + hotspot + R"(,"unit":"C"}}}])";
}

TEST_F(SystemChecks, amdGpusByAmdSmi) {
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
  outputs_["amd-smi metric"].out = amdMetric(R"("N/A")", "45");
  EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << "N/A is no zero";
  for (const char* text : {"[]", "", R"([{"gpu":1}])", R"({"error":"no driver"})"}) {
    outputs_["amd-smi metric"].out = text;
    EXPECT_EQ(check("gpu.amd").status, CheckStatus::NoData) << text;
  }
  EXPECT_TRUE(parseAmdSmi(R"({"gpu_data":[]})", "[]")->empty());
}

}  // namespace
}  // namespace muster::validate
