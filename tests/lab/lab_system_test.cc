// SPDX-License-Identifier: Apache-2.0
// up → Redfish → down on this machine: a real namespace, libvirtd, BMCs, fabric and Slurm. Needs
// root.
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/lab.h"
#include "lab/lab.h"
#include "lab/netns.h"
#include "tests/lab/lab_cluster.h"
#include "tests/lab/redfish_session.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>

namespace muster::lab {
namespace {

using namespace std::chrono_literals;

class LabSystem : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: it makes network namespaces and mounts";
    char name[] = "/tmp/muster-lab-XXXXXX";
    base_ = ::mkdtemp(name);
    folder_ = base_ / "lab";
    ::setenv("MUSTER_LAB_TEST_PASSWORD", "secret-1", 1);
    cluster_ = labCluster(fmt::format("t{}", ::getpid()));
  }
  void TearDown() override {
    if (folder_.empty()) return;
    auto ended = down(folder_, say);
    EXPECT_TRUE(ended) << ended.error().str();
    std::filesystem::remove_all(base_);
  }
  void expectNothingLeft(const std::string& netns) {
    EXPECT_FALSE(namespaceExists(netns));
    EXPECT_FALSE(std::filesystem::exists(folder_));
    EXPECT_TRUE(programsUsing(folder_.string()).empty());
  }
  /// Command lines of processes that mention the folder.
  static std::vector<std::string> programsUsing(const std::string& folder) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      auto line = io::readFile(entry.path() / "cmdline");
      if (line && line->find(folder) != std::string::npos) found.push_back(*line);
    }
    return found;
  }
  std::string tool(const LabHandle& lab, std::vector<std::string> argv,
                   std::map<std::string, std::string> env) {
    io::Command command{
        .program = "ip", .args = {"netns", "exec", lab.netns}, .env = std::move(env)};
    command.args.insert(command.args.end(), argv.begin(), argv.end());
    auto out = io::runChecked(command);
    EXPECT_TRUE(out) << out.error().str();
    return out ? *out : "";
  }
  static void say(std::string_view text) { std::cout << "  " << text << std::endl; }

  std::filesystem::path base_, folder_;
  inventory::Cluster cluster_;
};

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST_F(LabSystem, upWorksAndDownLeavesNothing) {
  auto began = std::chrono::steady_clock::now();
  auto lab = up(cluster_, folder_, say);
  ASSERT_TRUE(lab) << lab.error().str();
  std::cout << fmt::format("  up took {} ms\n",
                           std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::steady_clock::now() - began)
                               .count());

  auto found = find(folder_);
  ASSERT_TRUE(found && *found);
  auto nodes = status(**found);
  ASSERT_TRUE(nodes) << nodes.error().str();
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[0].power, "off");

  // The BMC switches the machine on.
  RedfishSession bmc(lab->netns, "https://10.77.250.2");
  EXPECT_EQ(bmc.login("admin", "wrong"), 401);
  ASSERT_EQ(bmc.login("admin", "secret-1"), 201);
  EXPECT_EQ(bmc.get("/redfish/v1/Systems/system")["PowerState"], "Off");
  EXPECT_EQ(
      bmc.post("/redfish/v1/Systems/system/Actions/ComputerSystem.Reset", {{"ResetType", "On"}}),
      204);
  EXPECT_EQ(bmc.get("/redfish/v1/Systems/system")["PowerState"], "On");
  nodes = status(*lab);
  EXPECT_EQ((*nodes)[1].power, "on");
  EXPECT_EQ(bmc.post("/redfish/v1/Systems/system/Actions/ComputerSystem.Reset",
                     {{"ResetType", "ForceOff"}}),
            204);
  EXPECT_EQ(bmc.get("/redfish/v1/Systems/system")["PowerState"], "Off");
  auto before = bmc.fingerprint();

  // The fabric is the declared one, and breaks where it is told to.
  auto discovered = tool(*lab, {"ibsim-run", "ibnetdiscover"}, lab->fabric_env);
  EXPECT_EQ(count(discovered, "\nSwitch"), 3u) << discovered;
  EXPECT_EQ(count(discovered, "\nCa"), 5u) << "two nodes with two rails, and the controller";
  EXPECT_TRUE(fault(*lab, "Unlink \"gpu001-mlx5_0\"[1]"));

  // Slurm knows the nodes and waits for them.
  auto sinfo =
      tool(*lab, {"sinfo", "-N", "-h", "-o", "%N %T"}, {{"SLURM_CONF", lab->slurm_conf.string()}});
  EXPECT_NE(sinfo.find("gpu001 down"), std::string::npos) << sinfo;
  EXPECT_NE(sinfo.find("gpu002 down"), std::string::npos) << sinfo;

  // Up on a damaged lab repairs it; the BMC's certificate stays the same.
  for (const auto* daemon : {"munged", "vbmc"})
    EXPECT_TRUE((io::PidFile{folder_ / "pids" / daemon}.terminate(2s)));
  auto repaired = up(cluster_, folder_, say);
  ASSERT_TRUE(repaired) << repaired.error().str();
  RedfishSession again(lab->netns, "https://10.77.250.2");
  EXPECT_EQ(again.login("admin", "secret-1"), 201);
  EXPECT_EQ(again.fingerprint(), before);

  EXPECT_EQ(repaired->id, lab->id) << "it is the same rack";

  // A down that was killed after its first step: what is left is no rack, so up makes another one.
  auto record = nlohmann::json::parse(io::readFile(folder_ / "made.json").value());
  record["ending"] = true;
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "made.json", record.dump()));
  auto anew = up(cluster_, folder_, say);
  ASSERT_TRUE(anew) << anew.error().str();
  EXPECT_NE(anew->id, lab->id);
  RedfishSession other(anew->netns, "https://10.77.250.2");
  EXPECT_EQ(other.login("admin", "secret-1"), 201);
  EXPECT_NE(other.fingerprint(), before);

  auto ended = down(folder_, say);
  EXPECT_TRUE(ended) << ended.error().str();
  expectNothingLeft(lab->netns);
  EXPECT_TRUE(down(folder_, say)) << "down on nothing succeeds";
}

TEST_F(LabSystem, downCleansUpAfterAKilledUp) {
  auto netns = "muster-" + cluster_.name;
  auto child = ::fork();
  if (child == 0) {
    auto ignored = up(cluster_, folder_, say);
    ::_exit(ignored ? 0 : 1);
  }
  for (int waited = 0; !std::filesystem::exists(folder_ / "pids" / "libvirtd") && waited < 1500;
       ++waited)
    ::usleep(20'000);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(namespaceExists(netns));
  auto ended = down(folder_, say);
  EXPECT_TRUE(ended) << ended.error().str();
  expectNothingLeft(netns);
}

TEST_F(LabSystem, aFailedUpUndoesWhatItMade) {
  auto netns = "muster-" + cluster_.name;
  cluster_.lab->vcpus = 0;  // libvirt refuses the domain, when nearly everything else is up
  auto lab = up(cluster_, folder_, say);
  EXPECT_FALSE(lab);
  expectNothingLeft(netns);
}

TEST_F(LabSystem, aNamespaceOfSomebodyElseIsLeftAlone) {
  auto netns = "muster-" + cluster_.name;
  ASSERT_TRUE(io::runChecked({.program = "ip", .args = {"netns", "add", netns}}));
  auto lab = up(cluster_, folder_, say);
  ASSERT_FALSE(lab);
  EXPECT_EQ(lab.error().code(), ErrorCode::Conflict);
  EXPECT_TRUE(down(folder_, say));
  EXPECT_TRUE(namespaceExists(netns));
  EXPECT_TRUE(io::runChecked({.program = "ip", .args = {"netns", "delete", netns}}));
}

TEST_F(LabSystem, aFolderOfSomebodyElseIsLeftAlone) {
  ASSERT_TRUE(io::makeDirs(folder_));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "thesis.txt", "ten years of work"));
  auto lab = up(cluster_, folder_, say);
  ASSERT_FALSE(lab);
  EXPECT_EQ(lab.error().code(), ErrorCode::Conflict);
  EXPECT_TRUE(down(folder_, say));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "thesis.txt"));
}

}  // namespace
}  // namespace muster::lab
