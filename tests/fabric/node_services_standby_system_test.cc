// SPDX-License-Identifier: Apache-2.0
// A standby subnet manager under real systemd, by the unit and the files that its node gets, over
// real ibsim and OpenSM.
//
// systemd runs as a user's instance in a mount namespace of the test's own: it wants
// /run/systemd/system, which only a booted system has.
#include "fabric/discovery/tools.h"
#include "fabric/node_services.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/simulated_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace muster::fabric::test {
namespace {

using muster::test::runAsync;
using ::testing::HasSubstr;

constexpr const char* kSystemd = "/lib/systemd/systemd";
constexpr const char* kUnit = "muster-opensm.service";
constexpr std::string_view kStandby = "gpu003 mlx5_0";
constexpr std::chrono::seconds kStandbyLimit{30};

/// ibsim-run's own words, so that the path is right on every system.
std::string simulatorLibrary() {
  const auto ran = io::runBlocking({"ibsim-run", {"sh", "-c", "echo $LD_PRELOAD"}});
  auto path = ran ? ran->out.substr(0, ran->out.find('\n')) : std::string();
  return path;
}

class StandbyUnderSystemd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for a mount namespace";
    if (!std::filesystem::exists(kSystemd)) GTEST_SKIP() << "systemd is not installed";
    cluster_.fabrics.at("ib").subnet_managers = {"controller", "gpu003"};
    declared_ = declared(cluster_);
    fabric_.emplace(declared_);
    options_ = fabric_->options();
    tools_.emplace(fabric_->processes(), options_);
    master_.emplace(fabric_->processes(), *tools_, options_.run_folder);
    startMaster();
    writeFiles();
    startSystemd();
  }
  void TearDown() override {
    if (systemd_) {
      (void)systemctl({"stop", kUnit});
      systemd_->terminate(std::chrono::seconds(5));
    }
  }

  void startMaster() {
    const auto found = runAsync(tools_->discover());
    ASSERT_TRUE(found) << found.error().str();
    known_.learn(declared_, *found);
    const auto& fabric = cluster_.fabrics.at("ib");
    rules_ = declaredPartitions(cluster_, fabric, declared_).value();
    ASSERT_TRUE(master_->start(
        renderSm(fabric, declared_, rules_, known_,
                 {known_.hcas.at(std::string(kControllerHca)), options_.run_folder, 0})));
    ASSERT_TRUE(eventually([this] { return master_->log().subnet_up; }, kStandbyLimit))
        << master_->logTail();
  }
  /// What the agent writes to /etc/muster/opensm, in a folder of the test.
  void writeFiles() {
    auto files = opensmFiles(cluster_, cluster_.fabrics.at("ib"), declared_, known_, "gpu003", "");
    ASSERT_TRUE(files) << files.error().str();
    const auto put = [](const std::filesystem::path& path, const std::string& text) {
      ASSERT_TRUE(io::makeDirs(path.parent_path()) && io::writeFileAtomic(path, text));
    };
    for (auto& [name, text] : files->files) {
      for (auto at = text.find(kNode); at != std::string::npos;
           at = text.find(kNode, at + home().size()))
        text.replace(at, kNode.size(), home());
      put(name == kUnit ? folder_ / "units" / name : std::filesystem::path(home()) / name, text);
    }
    put(folder_ / "units" / (std::string(kUnit) + ".d") / "simulator.conf",
        fmt::format("[Service]\nWorkingDirectory={}\nEnvironment=LD_PRELOAD={} IBSIM_SOCKNAME={} "
                    "SIM_HOST={}\n",
                    home(), simulatorLibrary(), options_.tool_env.at("IBSIM_SOCKNAME"),
                    ibsimNodeId(kStandby)));
  }
  void startSystemd() {
    ASSERT_TRUE(io::makeDirs(folder_ / "run"));
    io::Command command;
    command.program = "unshare";
    command.args = {
        "-m",
        "--propagation",
        "private",
        "sh",
        "-c",
        "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec \"$0\" --user",
        kSystemd};
    command.env = environment();
    auto started = fabric_->processes().start(std::move(command), folder_ / "systemd.log");
    ASSERT_TRUE(started) << started.error().str();
    systemd_ = std::move(*started);
    ASSERT_TRUE(eventually(
        [this] { return std::filesystem::exists(folder_ / "run/systemd/private"); }, kStandbyLimit))
        << io::readFile(folder_ / "systemd.log").value_or("");
  }
  std::map<std::string, std::string> environment() const {
    return {{"XDG_RUNTIME_DIR", (folder_ / "run").string()},
            {"SYSTEMD_UNIT_PATH", (folder_ / "units").string() + ":"},
            {"SYSTEMD_LOG_TARGET", "console"}};
  }
  io::ProcessExit systemctl(std::vector<std::string> words) const {
    words.insert(words.begin(), "--user");
    auto ran = io::runBlocking({"systemctl", std::move(words), environment()});
    return ran ? std::move(*ran) : io::ProcessExit{-1, "", ran.error().str()};
  }
  std::string show(const std::string& property) const {
    auto text = systemctl({"show", "-p", property, "--value", kUnit}).out;
    return text.substr(0, text.find('\n'));
  }
  bool standsBy() {
    const auto found = runAsync(tools_->discover());
    if (!found || !found->devices.contains(std::string(kStandby))) return false;
    const auto info =
        runAsync(tools_->smInfoOf(found->devices.at(std::string(kStandby)).addresses.at(1).lid));
    return info && info->standby;
  }
  std::string home() const { return (folder_ / "opensm").string(); }
  std::string log() const { return io::readFile(folder_ / "opensm/opensm.log").value_or(""); }

  static constexpr std::string_view kNode = "/etc/muster/opensm";
  muster::test::TempFolder folder_;
  inventory::Cluster cluster_ = railCluster(3);
  Topology declared_;
  std::optional<SimulatedFabric> fabric_;
  FabricOptions options_;
  std::optional<Tools> tools_;
  std::optional<SubnetManager> master_;
  KnownGuids known_;
  PartitionRules rules_;
  std::unique_ptr<io::Child> systemd_;
};

TEST_F(StandbyUnderSystemd, startsOnlyWithPartitionsComesBackAndTakesOver) {
  const auto partitions = std::filesystem::path(home()) / "partitions.conf";
  const auto declared_text = io::readFile(partitions).value();
  ASSERT_TRUE(io::writeFileAtomic(partitions, ""));
  EXPECT_NE(systemctl({"start", kUnit}).code, 0)
      << "OpenSM without partitions would open the fabric";
  EXPECT_EQ(log(), "") << "it was never started";

  ASSERT_TRUE(io::writeFileAtomic(partitions, declared_text));
  const auto started = systemctl({"start", kUnit});
  ASSERT_EQ(started.code, 0) << started.err << io::readFile(folder_ / "systemd.log").value_or("");
  EXPECT_TRUE(eventually([this] { return standsBy(); }, kStandbyLimit)) << log();

  const auto first = show("MainPID");
  ASSERT_EQ(::kill(std::stoi(first), SIGKILL), 0);
  EXPECT_TRUE(eventually(
      [&] {
        return show("ActiveState") == "active" && show("MainPID") != first &&
               show("MainPID") != "0";
      },
      kStandbyLimit))
      << show("ActiveState");
  EXPECT_TRUE(eventually([this] { return standsBy(); }, kStandbyLimit)) << log();

  ASSERT_TRUE(io::writeFileAtomic(partitions, ""));
  EXPECT_NE(systemctl({"reload", kUnit}).code, 0)
      << "told to read nothing, it would open the fabric when it takes over";
  ASSERT_TRUE(io::writeFileAtomic(partitions, declared_text));
  EXPECT_EQ(systemctl({"reload", kUnit}).code, 0);

  ASSERT_TRUE(master_->stop());
  EXPECT_TRUE(eventually([this] { return readSmLog(log()).master && readSmLog(log()).subnet_up; },
                         kStandbyLimit))
      << log();
  const auto found = runAsync(tools_->discover());
  ASSERT_TRUE(found);
  std::vector<PkeyPort> ports;
  for (const auto& [name, device] : found->devices)
    if (!device.is_switch) ports.emplace_back(device.addresses.at(1).lid, 1);
  const auto tables = runAsync(tools_->pkeyTables(ports));
  ASSERT_TRUE(tables) << tables.error().str();
  const auto by_guid = withGuids(rules_, known_.hcas);
  for (const auto& [name, device] : found->devices) {
    if (device.is_switch) continue;
    EXPECT_EQ(tables->at({device.addresses.at(1).lid, 1}),
              tableOf(by_guid, known_.hcas.at(name), name == kStandby))
        << name;
  }
}

}  // namespace
}  // namespace muster::fabric::test
