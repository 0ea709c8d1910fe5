// SPDX-License-Identifier: Apache-2.0
// A real OpenSM over real ibsim, run by a unit and not by the subnet manager's own
// process.
#include "base/io/daemon_server.h"
#include "fabric/discovery/tools.h"
#include "fabric/opensm/opensm_files.h"
#include "fabric/opensm/subnet_manager.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/simulated_fabric.h"

#include <gmock/gmock.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace muster::fabric::test {
namespace {

using muster::test::runAsync;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kUpLimit{60};

class OpensmUnit : public ::testing::Test {
 protected:
  OpensmUnit() : declared_(declared(cluster_)), fabric_(declared_), options_(fabric_.options()) {
    unit_ = {"muster-subnet-manager", folder_ / "socket", folder_ / "own", ::geteuid()};
    std::filesystem::create_directory(unit_.folder);
    options_.opensm_unit = unit_;
    daemon_ = {.name = "opensm",
               .command = opensmCommand(
                   Tools(fabric_.processes(), options_)
                       .command("opensm", {"-F", (unit_.folder / kOpensmConf).string()}),
                   unit_.folder),
               .check =
                   [this](const std::string& name, const std::string& text) {
                     return checkOpensmFile(name, text, unit_.folder);
                   },
               .needed = {std::string(kOpensmConf)},
               .first = {std::string(kGuidToLid)},
               .removed = {std::string(kOpensmLog), std::string(kSubnetList)},
               .ends_with_asker = false};
    serving_ = {.folder = unit_.folder, .asker = ::geteuid(), .idle = std::chrono::seconds(1)};
    listening_ = io::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, unit_.socket.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    EXPECT_EQ(::listen(listening_.get(), 4), 0);
    server_ = std::jthread([this] { (void)io::serveDaemon(listening_.get(), daemon_, serving_); });
  }
  SmFiles files() {
    const auto found = runAsync(tools_.discover());
    EXPECT_TRUE(found) << found.error().str();
    known_.learn(declared_, *found);
    const auto& fabric = cluster_.fabrics.at("ib");
    return renderSm(fabric, declared_, declaredPartitions(cluster_, fabric, declared_).value(),
                    known_, {known_.hcas.at(std::string(kControllerHca)), unit_.folder, 0});
  }
  SubnetManager manager() { return {fabric_.processes(), tools_, options_.run_folder, unit_}; }

  inventory::Cluster cluster_ = railCluster(2);
  Topology declared_;
  SimulatedFabric fabric_;
  FabricOptions options_;
  Tools tools_{fabric_.processes(), options_};
  muster::test::TempFolder folder_;
  io::DaemonUnit unit_;
  io::ServedDaemon daemon_;
  io::DaemonServerOptions serving_;
  io::Fd listening_;
  KnownGuids known_;
  std::jthread server_;  ///< ends when it has been idle
};

TEST_F(OpensmUnit, runsItForTheSubnetManagerWhichReadsWhatItSays) {
  auto own = manager();
  auto wanted = files();
  const auto started = own.start(wanted);
  ASSERT_TRUE(started) << started.error().str();
  ASSERT_TRUE(eventually([&] { return own.log().subnet_up; }, kUpLimit)) << own.logTail();
  EXPECT_TRUE(own.startedWith(wanted));
  EXPECT_TRUE(own.partitionsAre(wanted));
  ASSERT_TRUE(eventually([&] { return own.nodeGuids().has_value(); }, kUpLimit));
  EXPECT_FALSE(std::filesystem::exists(options_.run_folder / "opensm.conf"))
      << "its files are the unit's";
  const auto pid = own.pid();
  ASSERT_TRUE(pid);
  EXPECT_EQ(manager().pid(), pid) << "another command sees it";
  EXPECT_TRUE(manager().log().subnet_up);

  const auto sweeps = own.log().sweeps;
  wanted.cn_guids.clear();
  const auto told = own.applyNodes(wanted);
  ASSERT_TRUE(told) << told.error().str();
  EXPECT_TRUE(own.nodesAre(wanted));
  EXPECT_TRUE(eventually([&] { return own.log().sweeps != sweeps; }, kUpLimit)) << own.logTail();
  EXPECT_EQ(own.pid(), pid) << "it has swept, and was not started anew";

  auto evil = wanted;
  evil.opensm_conf += "event_plugin_name /tmp/evil.so\n";
  const auto refused = own.start(evil);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("none that this unit takes"));

  ASSERT_TRUE(own.stop());
  EXPECT_FALSE(own.pid());
  EXPECT_NE(::kill(*pid, 0), 0);
}

}  // namespace
}  // namespace muster::fabric::test
