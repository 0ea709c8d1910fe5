// A real slurmctld takes the exported topology, in a network namespace of the test's own.
#include "fabric/exports.h"
#include "tests/fabric/clusters.h"
#include "tests/run_async.h"

#include "base/io/crypto.h"
#include "base/io/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <thread>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit{60};
constexpr std::string_view kHost = "muster-controller";

class SlurmTopologySystem : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    ASSERT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWUTS), 0);
    ASSERT_EQ(::sethostname(kHost.data(), kHost.size()), 0);
    for (auto args : std::vector<std::vector<std::string>>{{"link", "set", "lo", "up"},
                                                           {"link", "add", "br0", "type", "bridge"},
                                                           {"addr", "add", "10.99.0.1/24", "dev", "br0"},
                                                           {"link", "set", "br0", "up"}})
      ASSERT_EQ(tool("ip", args).code, 0);
  }
  io::ProcessExit tool(std::string program, std::vector<std::string> args) {
    io::Command command{std::move(program), std::move(args)};
    command.env["SLURM_CONF"] = path("slurm.conf");
    return io::runBlocking(command).value_or(io::ProcessExit{-1, {}, {}});
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void start(const std::string& program, std::vector<std::string> args) {
    auto child = processes_->start({program, std::move(args)}, folder_ / (program + ".log"));
    ASSERT_TRUE(child) << child.error().str();
    daemons_.push_back(std::move(*child));
  }
  bool eventually(const std::function<bool()>& holds) {
    for (auto until = std::chrono::steady_clock::now() + kLimit; std::chrono::steady_clock::now() < until;
         std::this_thread::sleep_for(std::chrono::milliseconds(50)))
      if (holds()) return true;
    return holds();
  }
  /// What `scontrol show topology` says of it.
  std::string taken(const std::string& topology, const std::string& nodes) {
    std::string key;
    for (int i = 0; i < 16; ++i) key += io::sha256Hex(io::randomToken());
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "munge.key", key, 0400));
    EXPECT_TRUE(io::makeDirs(folder_ / "state"));
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "topology.conf", topology));
    EXPECT_TRUE(io::writeFileAtomic(
        folder_ / "slurm.conf",
        fmt::format("ClusterName=test\nSlurmctldHost={0}(10.99.0.1)\nSlurmUser=root\nAuthType=auth/munge\nAuthInfo=socket={1}/"
                    "munge.socket\nStateSaveLocation={1}/state\n"
                    "SlurmctldPidFile={1}/slurmctld.pid\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/"
                    "none\nMpiDefault=none\nTopologyPlugin=topology/tree\n"
                    "NodeName={2} NodeAddr=10.99.0.1 CPUs=1 State=DOWN\nPartitionName=gpu Nodes=ALL Default=YES State=UP\n",
                    kHost, folder_.path().string(), nodes)));
    start("munged", {"--foreground", "--force", "--key-file=" + path("munge.key"), "--socket=" + path("munge.socket"),
                     "--pid-file=" + path("munged.pid"), "--log-file=" + path("munged.log"), "--seed-file=" + path("munged.seed")});
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(folder_ / "munge.socket"); }));
    start("slurmctld", {"-D", "-f", path("slurm.conf")});
    EXPECT_TRUE(eventually([&] { return tool("scontrol", {"ping"}).out.find("is UP") != std::string::npos; }))
        << io::readFile(folder_ / "slurmctld.log").value_or("");
    log_ = io::readFile(folder_ / "slurmctld.log").value_or("");
    return tool("scontrol", {"show", "topology"}).out;
  }

  muster::test::TempFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::vector<std::unique_ptr<io::Child>> daemons_;
  std::string log_;
};

TEST_F(SlurmTopologySystem, takesScalableUnitsAsATree) {
  auto cluster = railCluster(6, 2);
  auto shown = taken(slurmTree(vicinityOf(cluster, cluster.fabrics["ib"], declared(cluster))), "gpu[001-006]");
  EXPECT_THAT(shown, HasSubstr("SwitchName=su1 Level=0 LinkSpeed=1 Nodes=gpu[001-004]"));
  EXPECT_THAT(shown, HasSubstr("SwitchName=ib Level=1 LinkSpeed=1 Nodes=gpu[001-006] Switches=su[1-2]"));
  EXPECT_EQ(log_.find("error: TOPOLOGY"), std::string::npos) << log_;
}

TEST_F(SlurmTopologySystem, takesAFatTreeOfThreeLevels) {
  auto cluster = railCluster(12, 2, 4, 2, 2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::FatTree;
  fabric.leaves_per_su = 2;
  fabric.leaf_down_ports = 8;
  fabric.cores = 2;
  auto shown = taken(slurmTree(vicinityOf(cluster, fabric, declared(cluster))), "gpu[001-012]");
  EXPECT_THAT(shown, HasSubstr("SwitchName=ib Level=2 LinkSpeed=1 Nodes=gpu[001-012] Switches=su[1-2]"));
  EXPECT_EQ(log_.find("error: TOPOLOGY"), std::string::npos) << log_;
}

}  // namespace
}  // namespace muster::fabric::test
