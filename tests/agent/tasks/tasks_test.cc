// SPDX-License-Identifier: Apache-2.0
// The handlers against a root folder of the test's own and programs in memory.
#include "agent/tasks/tasks.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

namespace muster::agent {
namespace {

using namespace test;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class TasksTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) {
    ASSERT_TRUE(io::makeDirs((root / path).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(root / path, content));
  }
  std::string read(const std::string& path) {
    auto text = io::readFile(root / path);
    return text ? *text : "unreadable: " + text.error().str();
  }
  Result<nlohmann::json> run(Async<nlohmann::json> work) {
    return runAsync(context, std::move(work));
  }
  TaskContextPtr task() { return std::make_shared<TaskContext>("t", 60s); }

  TempFolder folder;
  fs::path root = folder.path();
  ScriptedPrograms programs;
  Workers workers{1};
  FakeClock clock;
  asio::io_context context;
  TaskTools tools{root, "", programs, workers, clock, "muster-agent", {}};
};

// ---- Inspect

class InspectTest : public TasksTest {
 protected:
  void SetUp() override {
    put("sys/class/dmi/id/sys_vendor", "QEMU\n");
    put("sys/class/dmi/id/product_serial", "SN-42\n");
    put("sys/devices/system/cpu/online", "0-3,8\n");
    put("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");
    put("sys/block/vda/size", "8388608\n");
    put("sys/block/vda/serial", "  DISK-1  \n");
    put("sys/block/vda/removable", "0\n");
    put("sys/block/vda/device/vendor", "0x1af4\n");
    put("sys/block/loop0/size", "100\n");
    put("sys/block/loop0/device/x", "");
    put("sys/block/dm-0/size", "100\n");
    put("sys/block/sdb/size", "100\n");
    put("sys/block/sdb/removable", "1\n");
    put("sys/block/sdb/device/x", "");
    put("sys/block/sda/size", "16\n");
    put("sys/block/sda/removable", "0\n");
    put("sys/block/sda/device/vpd_pg80", std::string("\x00\x80\x00\x06", 4) + "SATA-7");
    put("sys/block/sda/device/wwid", "naa.5000c500a\n");
    put("sys/class/net/lo/address", "00:00:00:00:00:00\n");
    put("sys/class/net/eth0/address", "52:54:00:00:00:01\n");
    put("sys/class/net/eth0/device/x", "");
    fs::create_symlink("../../drivers/virtio_net", root / "sys/class/net/eth0/device/driver");
    fs::create_directories(root / "sys/class/infiniband/mlx5_0");
    put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
    put("sys/bus/pci/devices/0000:01:00.0/device", "0x2330\n");
    put("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
    put("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
    put("sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:03:00.0/class", "0x040300\n");
    programs.fails("muster-agent tool gpus", 1, "no NVML");
    tools.disk_content = [](const fs::path& device) -> Result<DiskContent> {
      if (device.filename() == "vda") return DiskContent{wire::DiskUse::Empty, "none"};
      return fail(ErrorCode::Unavailable, "I/O error");
    };
  }
};

TEST_F(InspectTest, readsWhatTheKernelSays) {
  auto hardware = runAsync(context, inspect(tools));
  ASSERT_TRUE(hardware) << hardware.error().str();
  EXPECT_EQ(hardware->manufacturer, "QEMU");
  EXPECT_EQ(hardware->serial, "SN-42");
  EXPECT_EQ(hardware->cpus, 5);
  EXPECT_EQ(hardware->memory_bytes, 2048u * 1024);
  ASSERT_EQ(hardware->disks.size(), 2u)
      << "loop, device-mapper and removable disks are no disks of the node";
  EXPECT_EQ(hardware->disks[0].path, "/dev/sda");
  EXPECT_EQ(hardware->disks[0].serial, "SATA-7");
  EXPECT_EQ(hardware->disks[0].wwn, "naa.5000c500a");
  EXPECT_EQ(hardware->disks[1].serial, "DISK-1");
  EXPECT_EQ(hardware->disks[1].size_bytes, 4ull << 30);
  ASSERT_EQ(hardware->nics.size(), 1u);
  EXPECT_EQ(hardware->nics[0].driver, "virtio_net");
  EXPECT_THAT(hardware->rdma_devices, ElementsAre("mlx5_0"));
  ASSERT_EQ(hardware->gpus.size(), 1u)
      << "not the graphics of another vendor, not a GPU's sound device";
  EXPECT_EQ(hardware->gpus[0].pci, "0000:01:00.0");
}

TEST_F(InspectTest, anInstinctIsAGpuThoughItIsNoDisplay) {
  put("sys/bus/pci/devices/0000:04:00.0/vendor", "0x1002\n");
  put("sys/bus/pci/devices/0000:04:00.0/class", "0x120000\n");
  put("sys/bus/pci/devices/0000:04:00.0/device", "0x74a1\n");
  put("sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:05:00.0/class", "0x068000\n");  // NVSwitch
  auto hardware = runAsync(context, inspect(tools));
  ASSERT_EQ(hardware->gpus.size(), 2u);
  EXPECT_EQ(hardware->gpus[1].pci, "0000:04:00.0");
}

TEST_F(InspectTest, diskThatCannotBeReadIsNotBlank) {
  auto hardware = runAsync(context, inspect(tools));
  EXPECT_EQ(hardware->disks[1].content, "none");
  EXPECT_EQ(hardware->disks[1].use, wire::DiskUse::Empty);
  EXPECT_EQ(hardware->disks[0].use, wire::DiskUse::Other);
  EXPECT_THAT(hardware->disks[0].content, HasSubstr("unreadable: I/O error"));
  tools.disk_content = nullptr;
  hardware = runAsync(context, inspect(tools));
  EXPECT_NE(hardware->disks[1].content, "none");
  EXPECT_EQ(hardware->disks[1].use, wire::DiskUse::Other);
}

TEST_F(InspectTest, nvmlKnowsMoreThanTheBus) {
  wire::Hardware seen;
  seen.gpus = {{"NVIDIA H100 80GB HBM3", "GPU-1", "165", "96.00", "0000:01:00.0"}};
  programs.on("muster-agent tool gpus", toJson(seen));
  auto hardware = runAsync(context, inspect(tools));
  ASSERT_EQ(hardware->gpus.size(), 1u);
  EXPECT_EQ(hardware->gpus[0].serial, "165");
}

// ---- Probe

TEST_F(TasksTest, probesTellWhatRunsAndLeaveOutWhatDoesNot) {
  put("proc/sys/kernel/osrelease", "6.1.0-test\n");
  fs::create_directories(root / "sys/module/rdma_rxe");
  fs::create_directories(root / "sys/class/infiniband/rxe0");
  programs.on("dpkg-query -W -f=${db:Status-Status} ${Version} rdma-core", "installed 44.0-2");
  programs.on("dpkg-query -W -f=${db:Status-Status} ${Version} removed", "config-files 1.0");
  programs.fails("dpkg-query -W -f=${db:Status-Status} ${Version} absent", 1, "no packages found");
  programs.on("muster-agent tool nvml-driver", "570.124.06\n");
  auto values =
      run(runProbe(tools, {{"probes",
                            {"kernel", "module.rdma-rxe", "module.other", "package.rdma-core",
                             "package.removed", "package.absent", "nvml.driver", "rdma.devices",
                             "module.../../etc", "package.--help", "nonsense"}}}));
  ASSERT_TRUE(values) << values.error().str();
  EXPECT_EQ(*values, (nlohmann::json{{"kernel", "6.1.0-test"},
                                     {"module.rdma-rxe", "loaded"},
                                     {"package.rdma-core", "44.0-2"},
                                     {"nvml.driver", "570.124.06"},
                                     {"rdma.devices", "rxe0"}}));
  EXPECT_EQ(programs.count("dpkg-query -W -f=${db:Status-Status} ${Version} --help"), 0u);
}

// ---- InstallDriver

class DriverTest : public TasksTest {
 protected:
  void SetUp() override {
    put("sys/class/net/eth0/device/x", "");
    put("sys/class/net/eth0/address", "52:54:00:00:00:01\n");
    put("sys/class/net/eth0/operstate", "up\n");
    put("sys/class/net/lo/operstate", "up\n");
    programs.on("dpkg-query", [this](const io::Command& command) -> Result<io::ProcessExit> {
      auto found = installed.find(command.args.back());
      if (found == installed.end()) return io::ProcessExit{1, "", "no packages found"};
      return io::ProcessExit{0, "installed " + found->second, ""};
    });
    params["repository_ca_pem"] =
        io::CertificateAuthority::loadOrCreate(root / "ca", "root")->certificatePem();
    programs.on("apt-get update", [this](const io::Command&) -> Result<io::ProcessExit> {
      source = read("etc/apt/sources.list.d/muster-rdma.list");
      trusted_root = read("etc/apt/muster-rdma-ca.pem");
      return io::ProcessExit{};
    });
    programs.on("apt-get install", [this](const io::Command& command) -> Result<io::ProcessExit> {
      for (const auto& word : command.args) {
        if (word.starts_with("rdma-core="))
          installed["rdma-core"] = offered.empty() ? word.substr(10) : offered;
      }
      return io::ProcessExit{};
    });
    programs.on("modprobe rdma_rxe", [this](const io::Command&) -> Result<io::ProcessExit> {
      fs::create_directories(root / "sys/module/rdma_rxe");
      return io::ProcessExit{};
    });
    programs.on("rdma link add rxe0 type rxe netdev eth0",
                [this](const io::Command&) -> Result<io::ProcessExit> {
                  fs::create_directories(root / "sys/class/infiniband/rxe0");
                  return io::ProcessExit{};
                });
    programs.on("systemctl", "");
  }
  Result<nlohmann::json> install() { return run(installDriver(tools, params, task())); }

  std::map<std::string, std::string> installed;
  std::string offered, source, trusted_root;
  nlohmann::json params{{"packages", {"rdma-core=44.0-2"}},
                        {"repository_url", "https://10.20.0.1:8443/repo/rdma"},
                        {"modules", {"rdma_rxe"}},
                        {"verify", {{"module.rdma_rxe", "loaded"}, {"package.rdma-core", "44.*"}}}};
};

TEST_F(DriverTest, installsLoadsAndProves) {
  auto running = install();
  ASSERT_TRUE(running) << running.error().str();
  EXPECT_EQ(*running,
            (nlohmann::json{{"module.rdma_rxe", "loaded"}, {"package.rdma-core", "44.0-2"}}));
  EXPECT_EQ(source, "deb [trusted=yes] https://10.20.0.1:8443/repo/rdma ./\n");
  EXPECT_EQ(params["repository_ca_pem"], trusted_root);
  EXPECT_FALSE(fs::exists(root / "etc/apt/sources.list.d/muster-rdma.list"))
      << "an unsigned source must not stay";
  EXPECT_FALSE(fs::exists(root / "etc/apt/muster-rdma-ca.pem"));
  EXPECT_EQ(read("etc/modules-load.d/muster-rdma.conf"), "rdma_rxe\n");
  EXPECT_THAT(read("etc/systemd/system/muster-rxe.service"),
              HasSubstr("rdma link add rxe0 type rxe netdev eth0"));
  EXPECT_EQ(programs.count("systemctl enable muster-rxe.service"), 1u);
  for (const auto& command : programs.commands()) {
    if (command.program != "apt-get") continue;
    EXPECT_EQ(command.env.at("DEBIAN_FRONTEND"), "noninteractive");
    EXPECT_THAT(command.args, ::testing::Contains("Acquire::https::10.20.0.1::CAInfo=" +
                                                  (root / "etc/apt/muster-rdma-ca.pem").string()));
    if (command.args[0] == "update") {
      EXPECT_THAT(command.args,
                  ::testing::Contains("Dir::Etc::sourcelist=sources.list.d/muster-rdma.list"));
    } else {
      EXPECT_THAT(command.args,
                  ::testing::IsSupersetOf({"--allow-downgrades", "rdma-core=44.0-2", "-y"}));
    }
  }
}

/// The controller gives its packages to nodes that show who they are; the copy of the key goes with
/// the run.
TEST_F(DriverTest, showsTheNodesCertificateToItsControllerOnly) {
  put("etc/passwd", "root:x:0:0::/:/bin/sh\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n");
  const auto made = io::makeKeyAndRequest("gpu001");
  tools.identity = [&made]() -> Result<io::TlsIdentity> {
    return io::TlsIdentity{made->key_pem, "CERTIFICATE"};
  };
  std::string seen;
  mode_t mode = 0;
  uid_t owner = 0;
  programs.on("apt-get update", [&](const io::Command&) -> Result<io::ProcessExit> {
    const auto key = root / "etc/apt/muster-rdma-client.key";
    seen = io::readFile(key).value_or("");
    struct stat info{};
    if (::stat(key.c_str(), &info) == 0) mode = info.st_mode & 07777, owner = info.st_uid;
    return io::ProcessExit{};
  });
  (void)install();
  EXPECT_EQ(seen, made->key_pem.reveal());
  EXPECT_EQ(mode, 0600u);
  if (::geteuid() == 0) EXPECT_EQ(owner, 42u);
  const auto key =
      "Acquire::https::10.20.0.1::SslKey=" + (root / "etc/apt/muster-rdma-client.key").string();
  const auto certificate =
      "Acquire::https::10.20.0.1::SslCert=" + (root / "etc/apt/muster-rdma-client.pem").string();
  for (const auto& command : programs.commands())
    if (command.program == "apt-get")
      EXPECT_THAT(command.args, ::testing::IsSupersetOf({key, certificate}));
  EXPECT_FALSE(fs::exists(root / "etc/apt/muster-rdma-client.key"));
  EXPECT_FALSE(fs::exists(root / "etc/apt/muster-rdma-client.pem"));
}

TEST_F(DriverTest, secondTimeChangesNothing) {
  ASSERT_TRUE(install());
  programs.clear();
  auto again = install();
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(programs.count("apt-get"), 0u);
  EXPECT_EQ(programs.count("rdma link add"), 0u);
  EXPECT_EQ(programs.count("systemctl"), 0u);
}

TEST_F(DriverTest, anotherPinIsAnotherInstall) {
  ASSERT_TRUE(install());
  params["packages"] = {"rdma-core=43.0-1"};
  params["verify"] = {{"package.rdma-core", "43.*"}};
  auto down = install();
  ASSERT_TRUE(down) << down.error().str();
  EXPECT_EQ(installed["rdma-core"], "43.0-1");
}

TEST_F(DriverTest, installedButNotRunningIsAFailure) {
  offered = "43.9-9";
  auto running = install();
  ASSERT_FALSE(running);
  EXPECT_THAT(running.error().str(), HasSubstr("package.rdma-core is 43.9-9, wanted 44.*"));
}

TEST_F(DriverTest, provisioningNicIsPreferredForSoftRoce) {
  put("sys/class/net/eth1/device/x", "");
  put("sys/class/net/eth1/address", "52:54:00:00:00:02\n");
  put("sys/class/net/eth1/operstate", "up\n");
  programs.on("rdma link add rxe0 type rxe netdev eth1", "");
  tools.provisioning_mac = "52:54:00:00:00:02";
  (void)install();
  EXPECT_EQ(programs.count("rdma link add rxe0 type rxe netdev eth1"), 1u);
}

TEST_F(DriverTest, aptsOwnWordsReachTheOperator) {
  programs.fails("apt-get install", 100, "E: Version '44.0-2' for 'rdma-core' was not found");
  auto running = install();
  ASSERT_FALSE(running);
  EXPECT_THAT(running.error().str(), HasSubstr("Version '44.0-2' for 'rdma-core' was not found"));
}

TEST_F(DriverTest, parametersCannotSmuggleAnything) {
  auto refused = [&](nlohmann::json change) {
    auto all = params;
    all.merge_patch(change);
    auto result = run(installDriver(tools, all, task()));
    return !result && result.error().code() == ErrorCode::InvalidInput;
  };
  EXPECT_TRUE(refused({{"packages", {"-o", "APT::x=y"}}}));
  EXPECT_TRUE(refused({{"packages", {"a;b"}}}));
  EXPECT_TRUE(refused({{"packages", {"a=1 b"}}}));
  EXPECT_TRUE(refused({{"packages", "rdma-core"}}));
  EXPECT_TRUE(refused({{"name", "../../etc/passwd"}}));
  EXPECT_TRUE(refused({{"repository_url", "https://x/ ./\ndeb http://evil"}}));
  EXPECT_TRUE(refused({{"repository_url", "http://10.20.0.1:8080/repo/rdma"}}))
      << "anybody could answer there";
  EXPECT_TRUE(refused({{"repository_ca_pem", nullptr}}));
  EXPECT_TRUE(refused({{"repository_ca_pem", "no certificate"}}));
  EXPECT_TRUE(refused({{"repository_url", "file:///etc"}}));
  EXPECT_TRUE(refused({{"modules", {"--remove"}}}));
  EXPECT_TRUE(refused({{"netdev", "eth0; reboot"}}));
  EXPECT_TRUE(programs.commands().empty());
}

// ---- pool

class PoolTaskTest : public TasksTest {
 protected:
  void SetUp() override {
    programs.on("systemctl show -p ActiveState --value",
                [this](const io::Command& command) -> Result<io::ProcessExit> {
                  bool up = active[command.args.back()];
                  return io::ProcessExit{0, up ? "active\n" : "inactive\n", ""};
                });
    programs.on("systemctl restart", [this](const io::Command& command) -> Result<io::ProcessExit> {
      active[command.args.back()] = starts;
      return io::ProcessExit{};
    });
    programs.on("systemctl stop", [this](const io::Command& command) -> Result<io::ProcessExit> {
      active[command.args.back()] = false;
      return io::ProcessExit{};
    });
    programs.on("systemctl enable", "");
    programs.on("systemctl disable", "");
    programs.on("chown munge:munge", "");
    programs.on("slurmd -V", "slurm-wlm 22.05.8\n");
    programs.on("journalctl", "fatal: no such node\n");
  }
  std::map<std::string, bool> active;
  bool starts = true;
  std::string key = std::string(64, 'k');
  nlohmann::json params{
      {"kind", "slurm"}, {"conf", "ClusterName=demo\n"}, {"munge_key", io::toBase64(key)}};
};

TEST_F(PoolTaskTest, joinsAndLeaves) {
  auto joined = run(joinPool(tools, params, task()));
  ASSERT_TRUE(joined) << joined.error().str();
  EXPECT_EQ((*joined)["slurmd"], "slurm-wlm 22.05.8");
  EXPECT_EQ(read("etc/slurm/slurm.conf"), "ClusterName=demo\n");
  EXPECT_EQ(read("etc/munge/munge.key"), key);
  struct stat info{};
  ASSERT_EQ(::stat((root / "etc/munge/munge.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0400u);
  EXPECT_TRUE(active["munge"] && active["slurmd"]);

  programs.clear();
  ASSERT_TRUE(run(joinPool(tools, params, task())));
  EXPECT_EQ(programs.count("systemctl restart"), 0u) << "nothing is new, so nothing is restarted";

  params["conf"] = "ClusterName=other\n";
  ASSERT_TRUE(run(joinPool(tools, params, task())));
  EXPECT_EQ(programs.count("systemctl restart slurmd"), 1u);
  EXPECT_EQ(programs.count("systemctl restart munge"), 0u);

  ASSERT_TRUE(run(leavePool(tools, task())));
  EXPECT_FALSE(active["slurmd"]);
}

TEST_F(PoolTaskTest, serviceThatDoesNotComeUpIsAFailureWithItsLastWords) {
  starts = false;
  std::optional<Result<nlohmann::json>> end;
  asio::co_spawn(
      context, joinPool(tools, params, task()),
      [&](std::exception_ptr, Result<nlohmann::json> answer) { end = std::move(answer); });
  for (int i = 0; i < 1000 && !end; ++i) {
    context.restart();
    context.poll();
    clock.advanceToNext();
  }
  ASSERT_TRUE(end);
  ASSERT_FALSE(*end);
  EXPECT_EQ(end->error().code(), ErrorCode::Timeout);
  EXPECT_THAT(end->error().str(), HasSubstr("fatal: no such node"));
}

TEST_F(PoolTaskTest, badParametersTouchNothing) {
  for (nlohmann::json change :
       {nlohmann::json{{"kind", "other"}}, nlohmann::json{{"munge_key", "???"}},
        nlohmann::json{{"munge_key", "YWJj"}}, nlohmann::json{{"conf", 7}}}) {
    auto all = params;
    all.merge_patch(change);
    EXPECT_FALSE(run(joinPool(tools, all, task())));
  }
  EXPECT_TRUE(programs.commands().empty());
  EXPECT_FALSE(fs::exists(root / "etc/slurm"));
}

// ---- checks

TEST_F(TasksTest, checksRunApartAndFailClosed) {
  std::vector<wire::CheckResult> results(1);
  results[0] = {"host.gemm", wire::CheckStatus::Pass, "fine", {}, "", 1};
  programs.on("muster-agent tool checks", toJson(results));
  nlohmann::json params{{"checks", {{{"id", "host.gemm"}, {"params", nlohmann::json::object()}}}}};
  auto ran = run(runChecksApart(tools, params, task()));
  ASSERT_TRUE(ran) << ran.error().str();
  EXPECT_EQ(wire::parseCheckResults(ran->dump())->at(0).status, wire::CheckStatus::Pass);
  EXPECT_EQ(programs.commands().back().stdin_text, params.dump());

  params["checks"].push_back({{"id", "host.memory"}});
  EXPECT_FALSE(run(runChecksApart(tools, params, task()))) << "a check without a result";
  programs.fails("muster-agent tool checks", 139, "");
  EXPECT_FALSE(run(runChecksApart(tools, params, task()))) << "a crash";
  programs.on("muster-agent tool checks", "nonsense");
  EXPECT_FALSE(run(runChecksApart(tools, params, task())));
}

TEST_F(TasksTest, modesHaveTheirOwnSets) {
  auto ram = makeHandlers(wire::Mode::Ram, tools);
  auto disk = makeHandlers(wire::Mode::Disk, tools);
  EXPECT_FALSE(ram.contains(wire::TaskKind::InstallDriver));
  EXPECT_FALSE(ram.contains(wire::TaskKind::JoinPool));
  EXPECT_FALSE(disk.contains(wire::TaskKind::WriteImage));
  for (auto kind : {wire::TaskKind::Inspect, wire::TaskKind::Probe, wire::TaskKind::Reboot,
                    wire::TaskKind::RunChecks}) {
    EXPECT_TRUE(ram.contains(kind) && disk.contains(kind));
  }
}

}  // namespace
}  // namespace muster::agent
