// SPDX-License-Identifier: Apache-2.0
// The files themselves (golden), and what becomes of those that were there before.
#include "agent/network/network_files.h"

#include "tests/agent/network/networks.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include "base/io/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>

namespace muster::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string allOf(const std::vector<NetworkFile>& files) {
  std::string text;
  for (const auto& file : files)
    text += "#### " + file.path + " " + (file.mode == 0600 ? "0600" : "0644") + "\n" + file.content;
  return text;
}

void compare(NetworkStack stack, const std::string& name) {
  const auto golden = test::sourceFolder() / "tests/agent/network/golden" / (name + ".txt");
  const auto text = allOf(networkFiles(sampleNodeNetwork(), stack));
  if (std::getenv("UPDATE_GOLDEN")) {
    ASSERT_TRUE(io::writeFileAtomic(golden, text));
    return;
  }
  EXPECT_EQ(text, io::readFile(golden).value_or("(missing)"));
}

TEST(NetworkFiles, ofNetworkd) { compare(NetworkStack::Networkd, "networkd"); }
TEST(NetworkFiles, ofNetplan) { compare(NetworkStack::Netplan, "netplan"); }
TEST(NetworkFiles, ofNetworkManager) { compare(NetworkStack::NetworkManager, "keyfiles"); }

TEST(NetworkFiles, aFallbackLiesAfterAllOthers) {
  for (const auto stack : {NetworkStack::Networkd, NetworkStack::Netplan}) {
    const auto files = networkFiles(sampleNodeNetwork(), stack);
    const auto fallback = std::find_if(files.begin(), files.end(), [](const NetworkFile& file) {
      return file.path.ends_with("/90-muster-fallback.network");
    });
    ASSERT_NE(fallback, files.end()) << toString(stack);
    EXPECT_THAT(fallback->content, HasSubstr("[Match]\nPermanentMACAddress=52:54:00:20:00:01\n\n"));
    EXPECT_THAT(fallback->content, HasSubstr("Address=10.20.1.1/16\n"));
    EXPECT_THAT(fallback->content, HasSubstr("Gateway=10.20.0.254\n"));
    for (const auto& file : files)
      if (file.path.ends_with(".network") && &file != &*fallback)
        EXPECT_LT(std::filesystem::path(file.path).filename(), "90-muster-fallback.network");
  }
}

class WrittenNetwork : public testing::Test {
 protected:
  void there(const std::string& name, const std::string& content = "") {
    ASSERT_TRUE(io::makeDirs((root_ / name).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(root_ / name, content, 0755));
  }
  std::string at(const std::string& name) const {
    return io::readFile(root_ / name).value_or("(missing)");
  }

  test::TempFolder folder_;
  std::filesystem::path root_ = folder_ / "root";
};

TEST_F(WrittenNetwork, theStackIsWhatTheSystemHas) {
  EXPECT_EQ(networkStackOf(root_), NetworkStack::Networkd);
  there("usr/sbin/NetworkManager");
  EXPECT_EQ(networkStackOf(root_), NetworkStack::NetworkManager);
  there("usr/lib/systemd/systemd-networkd");
  EXPECT_EQ(networkStackOf(root_), NetworkStack::Networkd) << "one of them brings links up";
  there("usr/sbin/netplan");
  EXPECT_EQ(networkStackOf(root_), NetworkStack::Networkd) << "netplan without its generator";
  there("usr/libexec/netplan/generate");
  EXPECT_EQ(networkStackOf(root_), NetworkStack::Netplan);
}

TEST_F(WrittenNetwork, whatAnEarlierDeclarationLeftIsTakenAway) {
  there("etc/systemd/network/10-muster-provisioning.network", "[Match]\nMACAddress=x\n");
  there("etc/systemd/network/10-muster-gone.netdev");
  there("etc/systemd/network/20-site.network", "the site's own");
  auto network = sampleNodeNetwork();
  ASSERT_TRUE(writeNetworkFiles(root_, network, NetworkStack::Networkd));
  const auto files = ownNetworkFiles(root_);
  EXPECT_THAT(files, Contains("etc/systemd/network/10-muster-stor.network"));
  EXPECT_THAT(files, Not(Contains(HasSubstr("provisioning"))));
  EXPECT_THAT(files, Not(Contains(HasSubstr("gone"))));
  EXPECT_EQ(at("etc/systemd/network/20-site.network"), "the site's own");
  network.links.pop_back();
  ASSERT_TRUE(writeNetworkFiles(root_, network, NetworkStack::Networkd));
  EXPECT_THAT(ownNetworkFiles(root_), Not(Contains(HasSubstr("stor"))));
  ASSERT_TRUE(writeNetworkFiles(root_, network, NetworkStack::NetworkManager));
  EXPECT_THAT(ownNetworkFiles(root_), Not(Contains(HasSubstr("10-muster-boot.network"))))
      << "the system was changed to another stack";
}

TEST_F(WrittenNetwork, otherConfigurationsOfNetplanDoNotCount) {
  there("etc/netplan/50-cloud-init.yaml", "network: {version: 2}");
  there("etc/cloud/cloud.cfg.d/05_logging.cfg");
  ASSERT_TRUE(writeNetworkFiles(root_, sampleNodeNetwork(), NetworkStack::Netplan));
  EXPECT_EQ(at("etc/netplan/50-cloud-init.yaml"), "(missing)");
  EXPECT_EQ(at("etc/netplan/50-cloud-init.yaml.before-muster"), "network: {version: 2}");
  EXPECT_THAT(at("etc/cloud/cloud.cfg.d/99-muster-network.cfg"), HasSubstr("config: disabled"))
      << "cloud-init would write it anew";
  struct stat info{};
  ASSERT_EQ(::stat((root_ / "etc/netplan/90-muster.yaml").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(WrittenNetwork, theDigestIsThatOfAllFiles) {
  auto network = sampleNodeNetwork();
  const auto before = digestOf(networkFiles(network, NetworkStack::Networkd));
  EXPECT_EQ(digestOf(networkFiles(network, NetworkStack::Networkd)), before);
  network.links.back().vlan_id = 31;
  EXPECT_NE(digestOf(networkFiles(network, NetworkStack::Networkd)), before);
}

}  // namespace
}  // namespace muster::agent
