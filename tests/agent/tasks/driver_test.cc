// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/tasks.h"
#include "base/io/crypto.h"
#include "tests/agent/tasks/tasks_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace muster::agent
