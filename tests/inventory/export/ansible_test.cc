// SPDX-License-Identifier: Apache-2.0
#include "inventory/export/ansible.h"
#include "base/io/process.h"
#include "inventory/model/profile.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AnsibleInventory : public ::testing::Test {
 protected:
  AnsibleInventory() {
    Profile batch;
    batch.name = "gpu-h100";
    batch.pool = "batch";
    cluster_.profiles["gpu-h100"] = batch;
    Profile login;
    login.name = "login";
    cluster_.profiles["login"] = login;
    add("gpu001", "gpu-h100", "hall-1/r1", "10.20.1.1");
    add("gpu002", "gpu-h100", "hall-1_r1", "10.20.1.2");
    add("login1", "login", "", "");
  }
  void add(const char* name, const char* profile, const char* rack, const char* address) {
    Node node;
    node.name = NodeName(name);
    node.profile = profile;
    node.rack = rack;
    node.unit = 7;
    node.mac = *Mac::parse("52:54:00:20:01:02");
    if (*address) node.address = *Ipv4::parse(address);
    node.bmc.url = "https://root@10.20.250.1";
    cluster_.nodes.push_back(node);
  }
  Cluster cluster_;
};

TEST_F(AnsibleInventory, hasGroupsByProfilePoolAndRack) {
  const auto read = nlohmann::json::parse(ansibleInventory(cluster_));
  EXPECT_THAT(read["profile_gpu_h100"]["hosts"], ElementsAre("gpu001", "gpu002"));
  EXPECT_THAT(read["pool_batch"]["hosts"], ElementsAre("gpu001", "gpu002"));
  EXPECT_THAT(read["profile_login"]["hosts"], ElementsAre("login1"));
  EXPECT_FALSE(read["_meta"]["hostvars"]["login1"].contains("ansible_host"));
  EXPECT_EQ(read["_meta"]["hostvars"]["gpu001"]["muster_bmc"], "https://10.20.250.1");
  int racks = 0;
  for (const auto& [group, content] : read.items())
    if (group.starts_with("rack_hall_1_r1_")) racks += content["hosts"].size() == 1 ? 1 : 0;
  EXPECT_EQ(racks, 2) << "two racks whose names differ in a sign that Ansible does not take";
}

/// Ansible itself, which warns of names that it does not take.
TEST_F(AnsibleInventory, isWhatAnsibleReads) {
  if (!io::runBlocking({"ansible-inventory", {"--version"}})) GTEST_SKIP() << "no ansible here";
  test::TempFolder folder;
  const auto script = folder / "site";
  std::ofstream(folder / "list.json") << ansibleInventory(cluster_);
  std::ofstream(script) << "#!/bin/sh\ncat " << (folder / "list.json").string() << "\n";
  std::filesystem::permissions(script, std::filesystem::perms(0755));
  io::Command command{"ansible-inventory", {"-i", script.string(), "--list"}};
  command.env = {{"HOME", folder.path().string()}, {"LC_ALL", "C.UTF-8"}};
  const auto said = io::runBlocking(command);
  ASSERT_TRUE(said) << said.error().str();
  ASSERT_EQ(said->code, 0) << said->err;
  EXPECT_THAT(said->err, Not(HasSubstr("WARN"))) << said->err;
  const auto read = nlohmann::json::parse(said->out);
  EXPECT_EQ(read["_meta"]["hostvars"]["gpu002"]["ansible_host"], "10.20.1.2");
  EXPECT_THAT(read["pool_batch"]["hosts"], ElementsAre("gpu001", "gpu002"));
}

}  // namespace
}  // namespace muster::inventory
