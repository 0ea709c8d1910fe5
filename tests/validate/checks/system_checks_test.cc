// SPDX-License-Identifier: Apache-2.0
// Checks of the machine over a folder that looks like one, and over programs that say what they are
// told to.
#include "tests/validate/fake_host.h"
#include "validate/checks/amd.h"
#include "validate/checks/pci.h"
#include "validate/checks/rdma_devices.h"
#include "validate/checks/system_evaluation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

namespace muster::validate {
namespace {

using nlohmann::json;
using wire::CheckStatus;

using SystemChecks = FakeHost;

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

TEST(Troubles, ofAmdGpusToo) {
  EXPECT_TRUE(
      troublesIn("[    5.0] amdgpu 0000:05:00.0: amdgpu: SMU is initialized successfully!\n")
          .empty());
  EXPECT_EQ(troublesIn("[   99.1] amdgpu 0000:05:00.0: amdgpu: GPU reset begin!\n").size(), 1u);
  EXPECT_EQ(troublesIn("[   99.1] amdgpu 0000:05:00.0: amdgpu: socket: 0, die: 0, 2 uncorrectable "
                       "hardware errors detected in umc block\n")
                .size(),
            1u);
}

TEST(Xids, jobsAreNoReasonButTheRestIs) {
  EXPECT_TRUE(xidsIn("[1.0] NVRM: Xid (PCI:0000:18:00): 31, pid=77, MMU Fault\n").empty());
  EXPECT_EQ(xidsIn("[1.0] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n").size(),
            1u);
  EXPECT_EQ(xidsIn("NVRM: Xid (PCI:0000:18:00): 64\nNVRM: Xid (PCI:0000:19:00): 95\n").size(), 2u);
  EXPECT_EQ(xidsIn("NVRM: Xid (PCI:0000:18:00): what\n").size(), 1u)
      << "one that cannot be read is not a good one";
  EXPECT_EQ(xidsIn("NVRM: Xid (PCI:0000:18:00\n").size(), 1u);
}

/// The number says nothing: what the driver asks for now is behind "to".
TEST(Xids, ofRecoveryCountByWhatTheDriverAsksFor) {
  const auto of = [](const std::string& words) {
    return xidsIn("[1.0] NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from " +
                  words + "\n")
        .size();
  };
  EXPECT_EQ(of("0x0 (None) to 0x2 (Node Reboot Required)"), 1u);
  EXPECT_EQ(of("0x0 (None) to 0x1 (GPU Reset Required)"), 1u);
  EXPECT_EQ(of("0x0 (None) to 0x1 (PF FLR)"), 1u);
  EXPECT_EQ(of("0x1 (GPU Reset Required) to 0x0 (None)"), 0u);
  EXPECT_EQ(of("0x0 (None)"), 1u) << "cut off";
}

/// Source: the form in NVIDIA's Fabric Manager user guide.
TEST(Xids, ofNvswitchesCountUnlessTheyAreCalledNonFatal) {
  EXPECT_TRUE(xidsIn("[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 "
                     "egress non-posted PRIV error (First)\n")
                  .empty());
  EXPECT_EQ(xidsIn("[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28 "
                   "sourcetrack timeout error (First)\n")
                .size(),
            1u);
  EXPECT_EQ(xidsIn("[1.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): ?\n").size(), 1u)
      << "one that says nothing is not a good one";
}

TEST(Troubles, ofDisksFileSystemsAndNics) {
  for (const char* line :
       {"blk_update_request: I/O error, dev nvme2n1, sector 8 op 0x0:(READ)",
        "EXT4-fs error (device nvme0n1p2): ext4_find_entry",
        "XFS (nvme1n1): Metadata Corruption detected at xfs_agf_read_verify",
        "mlx5_core 0000:18:00.0: poll_health:800: device's health compromised - reached miss count",
        "NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x26:0x56:1474)"})
    EXPECT_EQ(troublesIn(line).size(), 1u) << line;
}

TEST(Clocks, mustBeSynchronisedAndBounded) {
  EXPECT_EQ(evaluateClock({true, 3}, 100).status, CheckStatus::Pass);
  EXPECT_EQ(evaluateClock({true, 101}, 100).status, CheckStatus::Fail);
  EXPECT_EQ(evaluateClock({false, 0}, 100).status, CheckStatus::Fail);
  EXPECT_EQ(evaluateClock({true, std::nan("")}, 100).status, CheckStatus::Fail);
  EXPECT_TRUE(clockState());
}

TEST(Numbers, areFiniteOrNone) {
  EXPECT_EQ(numberIn("42"), 42);
  EXPECT_EQ(numberIn("-1"), -1);
  for (const char* text : {"", "nan", "NaN", "inf", "-inf", "1e999", "4 2", "42%", "0x10"})
    EXPECT_FALSE(numberIn(text)) << text;
}

TEST_F(SystemChecks, dimmsNeedEdacAndNoUncorrectedError) {
  EXPECT_EQ(check("system.dimms").status, CheckStatus::NoData);
  write("sys/devices/system/edac/mc/mc0/ce_count", "3");
  EXPECT_EQ(check("system.dimms").status, CheckStatus::NoData) << "half an answer";
  write("sys/devices/system/edac/mc/mc0/ue_count", "0");
  write("sys/devices/system/edac/mc/mc0/dimm3/dimm_label", "CPU0_DIMM_D1");
  EXPECT_EQ(check("system.dimms").status, CheckStatus::Pass);
  EXPECT_EQ(check("system.dimms", {{"max_corrected", 2}}).status, CheckStatus::Fail);
  write("sys/devices/system/edac/mc/mc0/ce_count", "nan");
  EXPECT_EQ(check("system.dimms").status, CheckStatus::NoData) << "which is above no limit";
  write("sys/devices/system/edac/mc/mc0/ce_count", "3");
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

TEST_F(SystemChecks, tuningIsEvaluatedWhereItIsReadable) {
  EXPECT_EQ(check("system.tuning").status, CheckStatus::NoData);
  write("proc/sys/kernel/numa_balancing", "0");
  EXPECT_EQ(check("system.tuning").status, CheckStatus::Pass);
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  EXPECT_EQ(check("system.tuning").status, CheckStatus::Fail);
  EXPECT_EQ(check("system.tuning", {{"governor", "powersave"}}).status, CheckStatus::Pass);
  EXPECT_EQ(check("system.tuning", {{"governor", "powersave"}, {"smt", "0"}}).status,
            CheckStatus::NoData)
      << "asked for, and not there";
  EXPECT_EQ(check("system.tuning", {{"turbo", "1"}}).status, CheckStatus::Error);
}

TEST_F(SystemChecks, oneProcessorWithAnotherGovernorIsEnough) {
  for (int cpu = 0; cpu < 12; ++cpu)
    write(fmt::format("sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu), "performance");
  EXPECT_EQ(check("system.tuning").status, CheckStatus::Pass);
  write("sys/devices/system/cpu/cpu11/cpufreq/scaling_governor", "schedutil");
  EXPECT_NE(check("system.tuning").text.find("'performance+schedutil'"), std::string::npos)
      << check("system.tuning").text;
}

TEST_F(SystemChecks, aSocketWithLessMemoryHasLostADimm) {
  const auto node = [this](int n, int gib, const char* cpus) {
    const auto folder = fmt::format("sys/devices/system/node/node{}/", n);
    write(folder + "meminfo",
          fmt::format("Node {} MemTotal:  {} kB", n, static_cast<long long>(gib) << 20)),
        write(folder + "cpulist", cpus);
  };
  node(0, 1007, "0-55"), node(1, 1008, "56-111");
  const auto good = check("system.numa");
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_DOUBLE_EQ(good.values.at("memory_gib"), 2015);
  node(1, 944, "56-111");
  EXPECT_NE(check("system.numa").text.find("node1 has 944 GiB of memory, another 1007 GiB"),
            std::string::npos)
      << check("system.numa").text;
  node(1, 1008, "56-111"), node(2, 0, ""), node(3, 95, "");
  EXPECT_EQ(check("system.numa").status, CheckStatus::Pass) << "memory of GPUs, and room for it";
  node(2, 0, "112-120");
  EXPECT_EQ(check("system.numa").status, CheckStatus::Fail) << "a socket without memory";
}

TEST_F(SystemChecks, idleStatesAreAlikeOnAllProcessors) {
  EXPECT_EQ(check("system.idle").status, CheckStatus::NoData) << "the kernel says nothing";
  write("sys/devices/system/cpu/cpuidle/current_driver", "none");
  EXPECT_EQ(check("system.idle").status, CheckStatus::Pass) << "the firmware offers none";
  write("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle");
  const auto state = [this](int cpu, int number, const char* latency, const char* disable) {
    const auto folder = fmt::format("sys/devices/system/cpu/cpu{}/cpuidle/state{}/", cpu, number);
    write(folder + "latency", latency), write(folder + "disable", disable);
  };
  for (int cpu = 0; cpu < 12; ++cpu)
    state(cpu, 0, "0", "0"), state(cpu, 1, "2", "0"), state(cpu, 2, "290", "0");
  const auto deep = check("system.idle");
  EXPECT_EQ(deep.status, CheckStatus::Pass) << deep.text;
  EXPECT_DOUBLE_EQ(deep.values.at("idle_wake_us"), 290);
  EXPECT_EQ(check("system.idle", {{"max_us", 50}}).status, CheckStatus::Fail);
  state(7, 2, "290", "1");
  EXPECT_NE(check("system.idle").text.find("1 of 12 (cpu7)"), std::string::npos)
      << check("system.idle").text;
  for (int cpu = 0; cpu < 12; ++cpu) state(cpu, 2, "290", "1");
  EXPECT_EQ(check("system.idle", {{"max_us", 50}}).status, CheckStatus::Pass);
  for (int cpu = 0; cpu < 12; ++cpu)
    for (int number = 0; number < 3; ++number) state(cpu, number, "NaN", "0");
  EXPECT_EQ(check("system.idle").status, CheckStatus::NoData);
}

TEST_F(SystemChecks, linksThatMaySleepCostSpeed) {
  for (const char* good : {"[default] performance powersave powersupersave",
                           "default [performance] powersave powersupersave"}) {
    write("sys/module/pcie_aspm/parameters/policy", good);
    EXPECT_EQ(check("system.tuning").status, CheckStatus::Pass) << good;
  }
  write("sys/module/pcie_aspm/parameters/policy", "default performance [powersave] powersupersave");
  EXPECT_EQ(check("system.tuning").status, CheckStatus::Fail);
}

TEST_F(SystemChecks, processorsAreAllThereAndAlike) {
  EXPECT_EQ(check("system.cpus").status, CheckStatus::NoData);
  write("sys/devices/system/cpu/present", "0-3"), write("sys/devices/system/cpu/online", "0-3");
  for (int cpu = 0; cpu < 4; ++cpu) {
    write(fmt::format("sys/devices/system/cpu/cpu{}/microcode/version", cpu), "0xd000390");
    write(fmt::format("sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu),
          cpu < 2 ? "0" : "1");
  }
  EXPECT_EQ(check("system.cpus").status, CheckStatus::Pass);
  EXPECT_EQ(check("system.cpus", {{"count", 8}}).status, CheckStatus::Fail);
  write("sys/devices/system/cpu/cpu3/microcode/version", "0xd000375");
  EXPECT_NE(check("system.cpus").text.find("different microcode"), std::string::npos);
  write("sys/devices/system/cpu/cpu3/microcode/version", "0xd000390");
  write("sys/devices/system/cpu/online", "0,2-3"), write("sys/devices/system/cpu/offline", "1");
  EXPECT_NE(check("system.cpus").text.find("3 of 4 processors are online; offline: 1"),
            std::string::npos);
  write("sys/devices/system/cpu/online", "none");
  EXPECT_EQ(check("system.cpus").status, CheckStatus::NoData);
}

TEST_F(SystemChecks, translatedTransfersAndLockedClocksCostSpeed) {
  write("sys/kernel/iommu_groups/0/type", "DMA-FQ");
  EXPECT_NE(check("system.tuning").text.find("iommu=pt"), std::string::npos);
  write("sys/kernel/iommu_groups/0/type", "identity");
  EXPECT_EQ(check("system.tuning").status, CheckStatus::Pass);
  write("sys/devices/system/cpu/intel_pstate/no_turbo", "1");
  EXPECT_EQ(check("system.tuning").status, CheckStatus::Fail);
}

TEST_F(SystemChecks, rdmaPortsAreActiveFastAndClean) {
  EXPECT_EQ(check("rdma.ports").status, CheckStatus::NoData);
  write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  write("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)");
  write("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "0");
  EXPECT_EQ(check("rdma.ports", {{"min_gbits", 400}}).status, CheckStatus::Pass);
  write("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "7");
  EXPECT_EQ(check("rdma.ports").status, CheckStatus::Fail);
  EXPECT_EQ(check("rdma.ports", {{"max_errors", 10}, {"min_gbits", 400}}).status,
            CheckStatus::Pass);
  write("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)");
  EXPECT_EQ(check("rdma.ports", {{"max_errors", 10}, {"min_gbits", 399}}).status, CheckStatus::Fail)
      << "trained down";
  write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet");
  EXPECT_EQ(
      check("rdma.ports", {{"max_errors", 10}, {"min_gbits", 399}, {"link_layer", "InfiniBand"}})
          .status,
      CheckStatus::NoData)
      << "none of the fabric's";
  EXPECT_EQ(
      check("rdma.ports", {{"max_errors", 10}, {"min_gbits", 199}, {"link_layer", "Ethernet"}})
          .status,
      CheckStatus::Pass);
  write("sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE");
  write("sys/class/infiniband/rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)");
  EXPECT_EQ(check("rdma.ports", {{"max_errors", 10}, {"min_gbits", 199}}).status, CheckStatus::Pass)
      << "soft-RoCE has no link";
  write("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  write("sys/class/infiniband/mlx5_1/ports/1/rate", "400 Gb/sec (4X NDR)");
  EXPECT_EQ(check("rdma.ports", {{"max_errors", 10}}).status, CheckStatus::Fail)
      << "the second one too";
}

TEST_F(SystemChecks, portsOfEachFabricAreMeasuredByTheirOwn) {
  const auto port = [this](const char* device, const char* rate, const char* layer) {
    const auto at = fmt::format("sys/class/infiniband/{}/ports/1/", device);
    write(at + "state", "4: ACTIVE"), write(at + "rate", rate), write(at + "link_layer", layer);
  };
  port("mlx5_0", "400 Gb/sec (4X NDR)", "InfiniBand");
  port("mlx5_4", "200 Gb/sec (4X HDR)", "Ethernet");
  port("mlx5_9", "25 Gb/sec (1X EDR)", "Ethernet");
  const nlohmann::json ib{{"min_gbits", 399}, {"link_layer", "InfiniBand"}},
      roce{{"min_gbits", 199}, {"link_layer", "Ethernet"}};
  const auto of = [](nlohmann::json devices) { return nlohmann::json{{"devices", devices}}; };
  const auto good = check("rdma.ports", of({{"mlx5_0", ib}, {"mlx5_4", roce}}));
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_NE(good.text.find("2 ports"), std::string::npos) << "mlx5_9 is on no fabric";
  const auto wrong = check("rdma.ports", of({{"mlx5_0", ib}, {"mlx5_4", ib}}));
  EXPECT_EQ(wrong.status, CheckStatus::Fail);
  EXPECT_NE(wrong.text.find("mlx5_4/1 is of Ethernet, its fabric of InfiniBand"), std::string::npos)
      << wrong.text;
  const auto missing = check("rdma.ports", of({{"mlx5_0", ib}, {"mlx5_5", roce}}));
  EXPECT_EQ(missing.status, CheckStatus::Fail);
  EXPECT_NE(missing.text.find("mlx5_5 is not there"), std::string::npos) << missing.text;
  EXPECT_EQ(check("rdma.ports", of({{"mlx5_7", roce}})).status, CheckStatus::Fail);
}

TEST_F(SystemChecks, aNicBesideTheRailsIsNotEvaluated) {
  for (int i = 0; i < 8; ++i) {
    const auto port = fmt::format("sys/class/infiniband/mlx5_{}/ports/1/", i);
    write(port + "state", "4: ACTIVE");
    write(port + "rate", "400 Gb/sec (4X NDR)");
    write(port + "link_layer", "InfiniBand");
  }
  write("sys/class/infiniband/mlx5_8/ports/1/state", "1: DOWN");
  write("sys/class/infiniband/mlx5_8/ports/1/rate", "40 Gb/sec (4X QDR)");
  write("sys/class/infiniband/mlx5_8/ports/1/link_layer", "Ethernet");
  const auto verdict = check("rdma.ports", {{"min_gbits", 399}, {"link_layer", "InfiniBand"}});
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_NE(verdict.text.find("8 ports"), std::string::npos) << verdict.text;
  EXPECT_EQ(check("rdma.ports", {{"min_gbits", 399}}).status, CheckStatus::Fail)
      << "without a fabric all are meant";
}

TEST_F(SystemChecks, rcclTestsAreReadLikeNcclTests) {
  const json asked{{"model", "AMD Instinct MI300X"}, {"gpus", 8}, {"max_bytes", "1G"}};
  EXPECT_EQ(check("gpu.nccl-tests", asked).status, CheckStatus::Error) << "not installed";
  const auto table = [](const char* busbw, const char* wrong, int gpus = 8) {
    std::string devices;
    for (int gpu = 0; gpu < gpus; ++gpu)
      devices += fmt::format(
          "#  Rank  {0} Group  0 Pid   900 on n1 device  {0} [0000:{0}5:00] AMD\n", gpu);
    return fmt::format(
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 1073741824\n{2}#       size         count      "
        "type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
        "           8             2     float     sum      -1    23.61    0.00    0.00      0    "
        "23.40    0.00    0.00      0\n"
        "  1073741824     268435456     float     sum      -1   5859.4  183.25  {0}      {1}   "
        "5859.4  183.25  {0}      {1}\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : "
        "{0}\n",
        busbw, wrong, devices);
  };
  outputs_["all_reduce_perf"] = {0, table("320.69", "0"), ""};
  const auto good = check("gpu.nccl-tests", asked);
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_EQ(good.text.find("nothing was expected"), std::string::npos)
      << "the table has a floor for it";
  outputs_["all_reduce_perf"].out = table("320.69", "4");
  EXPECT_EQ(check("gpu.nccl-tests", asked).status, CheckStatus::Fail);
  auto slow = asked;
  slow["min_busbw_gbytes_per_s"] = 330;
  outputs_["all_reduce_perf"].out = table("320.69", "0");
  EXPECT_EQ(check("gpu.nccl-tests", slow).status, CheckStatus::Fail);
  outputs_["all_reduce_perf"].out = table("320.69", "0", 7);
  const auto seven = check("gpu.nccl-tests", asked);
  EXPECT_EQ(seven.status, CheckStatus::Fail);
  EXPECT_NE(seven.text.find("7 of 8 GPUs"), std::string::npos) << seven.text;
  outputs_["all_reduce_perf"].out = table("320.69", "0", 0);
  EXPECT_EQ(check("gpu.nccl-tests", asked).status, CheckStatus::NoData);
}

/// What dcgmi says of `gpus` GPUs; the shape is dcgm_test's.
std::string dcgmAnswer(int gpus, std::vector<std::string> tests) {
  auto list = json::array(), entities = json::array();
  for (int gpu = 0; gpu < gpus; ++gpu)
    entities.push_back({{"entity_id", gpu}, {"device_id", "2330"}, {"serial_num", "S"}});
  for (const auto& name : tests) {
    auto results = json::array();
    for (int gpu = 0; gpu < gpus; ++gpu)
      results.push_back({{"entity_group", "GPU"}, {"entity_id", gpu}, {"status", "Pass"}});
    list.push_back({{"name", name}, {"results", results}, {"test_summary", {{"status", "Pass"}}}});
  }
  const json category{{"category", "c"}, {"tests", list}};
  const json group{{"entity_group", "GPU"}, {"entities", entities}};
  return json{{"DCGM Diagnostic", {{"test_categories", json::array({category})}}},
              {"entity_groups", json::array({group})}}
      .dump();
}

TEST_F(SystemChecks, dcgmPassesWhenEachGpuHasPassedEachTestOfTheLevel) {
  const json asked{{"gpus", 8}, {"level", 2}};
  outputs_["dcgmi"] = {0, dcgmAnswer(8, {"software", "memory", "pcie"}), ""};
  const auto good = check("gpu.dcgm", asked);
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  outputs_["dcgmi"].code = 226;
  EXPECT_EQ(check("gpu.dcgm", asked).status, CheckStatus::Fail) << "its exit status counts too";
  outputs_["dcgmi"] = {0, dcgmAnswer(7, {"software", "memory", "pcie"}), ""};
  EXPECT_EQ(check("gpu.dcgm", asked).status, CheckStatus::Fail) << "one GPU fewer";
  outputs_["dcgmi"] = {0, dcgmAnswer(8, {"software", "memory"}), ""};
  EXPECT_EQ(check("gpu.dcgm", asked).status, CheckStatus::Fail) << "pcie was not run";
  auto without = asked;
  without["may_skip"] = "pcie,pulse_test";
  EXPECT_EQ(check("gpu.dcgm", without).status, CheckStatus::Pass) << "and the site says it cannot";
  auto one_skips = dcgmAnswer(8, {"software", "memory", "pcie"});
  const std::string passed = R"({"entity_group":"GPU","entity_id":5,"status":"Pass"})";
  const auto last = one_skips.rfind(passed);
  ASSERT_NE(last, one_skips.npos) << one_skips;
  one_skips.replace(last, passed.size(), R"({"entity_group":"GPU","entity_id":5,"status":"Skip"})");
  outputs_["dcgmi"] = {0, one_skips, ""};
  EXPECT_THAT(check("gpu.dcgm", without).text,
              HasSubstr("all other tests on each of 8 GPUs; not run: pcie on GPU 5"));
  outputs_["dcgmi"] = {1, "Error: unable to establish a connection", ""};
  EXPECT_EQ(check("gpu.dcgm", asked).status, CheckStatus::NoData);
}

}  // namespace
}  // namespace muster::validate
