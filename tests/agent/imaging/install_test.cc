// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/install.h"
#include "agent/imaging/secure_boot.h"

#include "base/io/files.h"
#include "tests/run_async.h"
#include "tests/selinux_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

class InstallTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::makeDirs(folder_ / "agent"));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent/muster-agent", "binary", 0755));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent/libx.so", "library"));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent/dhcp.sh", "of the RAM OS"));
    ASSERT_TRUE(io::makeDirs(root_ / "etc"));
    params_.hostname = "gpu001";
    params_.digest = std::string(64, 'd');
    params_.agent.url = "https://10.20.0.1:8443";
    params_.agent.ca_pem = "CA";
    params_.kernel_args = {"iommu=pt", "quiet"};
    layout_.esp_partuuid = "ESP-UUID";
    layout_.root_partuuid = "ROOT-UUID";
  }
  Result<void> configure() {
    return configureSystem(root_, params_, {Secret("KEY"), "CERTIFICATE"}, layout_,
                           "52:54:00:00:00:01", folder_ / "agent");
  }
  std::string at(const std::string& name) {
    return io::readFile(root_ / name).value_or("(missing)");
  }
  unsigned modeOf(const std::string& name) {
    struct stat info{};
    return ::stat((root_ / name).c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }

  test::TempFolder folder_;
  std::filesystem::path root_ = folder_ / "root";
  wire::WriteImageParams params_;
  Layout layout_;
};

TEST_F(InstallTest, theSystemKnowsItselfAndItsController) {
  ASSERT_TRUE(configure());
  EXPECT_EQ(at("etc/hostname"), "gpu001\n");
  EXPECT_THAT(at("etc/hosts"), HasSubstr("::1 localhost ip6-localhost ip6-loopback\n"));
  EXPECT_EQ(at("etc/machine-id"), "");
  EXPECT_THAT(at("etc/fstab"), HasSubstr("PARTUUID=ROOT-UUID / ext4"));
  const auto agent = nlohmann::json::parse(at("etc/muster/agent.json"));
  EXPECT_EQ(agent["url"], "https://10.20.0.1:8443");
  EXPECT_EQ(agent["node"], "gpu001");
  EXPECT_EQ(agent["image_digest"], params_.digest);
  EXPECT_EQ(at(agent["ca_pem_file"].get<std::string>().substr(1)), "CA");
  EXPECT_EQ(at(agent["key_file"].get<std::string>().substr(1)), "KEY");
  EXPECT_EQ(at(agent["certificate_file"].get<std::string>().substr(1)), "CERTIFICATE");
}

TEST_F(InstallTest, theAgentIsThereAndStartsByItself) {
  ASSERT_TRUE(configure());
  EXPECT_EQ(at("usr/lib/muster/muster-agent"), "binary");
  EXPECT_EQ(modeOf("usr/lib/muster/muster-agent"), 0755u);
  EXPECT_EQ(at("usr/lib/muster/libx.so"), "library");
  EXPECT_FALSE(std::filesystem::exists(root_ / "usr/lib/muster/dhcp.sh"));
  for (const char* hook : {"usr/lib/muster/slurm-health-check", "usr/lib/muster/slurm-prolog"}) {
    EXPECT_THAT(at(hook), HasSubstr("muster-agent fit --drain"));
    EXPECT_EQ(std::filesystem::status(root_ / hook).permissions(), std::filesystem::perms(0755));
  }
  EXPECT_THAT(at("etc/systemd/system/muster-agent.service"),
              HasSubstr("ExecStart=/usr/bin/env /usr/lib/muster/muster-agent "));
  EXPECT_EQ(std::filesystem::read_symlink(
                root_ / "etc/systemd/system/multi-user.target.wants/muster-agent.service"),
            "/etc/systemd/system/muster-agent.service");
}

TEST_F(InstallTest, whereSelinuxEnforcesWhatWasWrittenIsLabelled) {
  if (const auto why = test::noLabelsHere(); !why.empty()) GTEST_SKIP() << why;
  std::vector<std::string> said;
  const auto notify = [&said](const std::string& text) { said.push_back(text); };
  params_.authorized_keys = {"ssh-ed25519 AAAA a"};
  test::putSelinux(root_, "permissive");
  ASSERT_TRUE(configure());
  ASSERT_TRUE(labelSystem(root_, notify));
  EXPECT_THAT(said, testing::IsEmpty());
  EXPECT_EQ(test::labelOf(root_ / "etc/hosts"), "(none)");

  test::putSelinux(root_, "enforcing");
  const auto done = labelSystem(root_, notify);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_THAT(said, testing::ElementsAre(HasSubstr("SELinux")));
  EXPECT_EQ(test::labelOf(root_ / "etc/hosts"), "net_conf_t");
  EXPECT_EQ(test::labelOf(root_ / "etc/muster/agent.key"), "etc_t");
  EXPECT_EQ(test::labelOf(root_ / "etc/systemd/system/muster-agent.service"),
            "systemd_unit_file_t");
  EXPECT_EQ(test::labelOf(root_ / "root/.ssh/authorized_keys"), "ssh_home_t");
  EXPECT_EQ(test::labelOf(root_ / "usr/lib/muster/muster-agent"), "lib_t");
}

/// systemd may not run a lib_t; env is a bin_t, and what it becomes is not confined (fedora's
/// policy: init.te, unconfined.te, libraries.fc).
TEST_F(InstallTest, systemdStartsTheAgentByAProgramOfABinFolder) {
  ASSERT_TRUE(configure());
  EXPECT_THAT(at("etc/systemd/system/muster-agent.service"),
              HasSubstr("\nExecStart=/usr/bin/env /usr/lib/muster/muster-agent "));
}

TEST_F(InstallTest, secretsAreOnlyForRoot) {
  params_.authorized_keys = {"ssh-ed25519 AAAA a", "ssh-ed25519 BBBB b"};
  ASSERT_TRUE(configure());
  EXPECT_EQ(modeOf("etc/muster/agent.key"), 0600u);
  EXPECT_EQ(modeOf("root/.ssh"), 0700u);
  EXPECT_EQ(modeOf("root/.ssh/authorized_keys"), 0600u);
  EXPECT_EQ(at("root/.ssh/authorized_keys"), "ssh-ed25519 AAAA a\nssh-ed25519 BBBB b\n");
}

TEST_F(InstallTest, withoutKeysThereIsNoSshFolder) {
  ASSERT_TRUE(configure());
  EXPECT_FALSE(std::filesystem::exists(root_ / "root/.ssh"));
}

TEST_F(InstallTest, theNetworkIsFoundByItsAddress) {
  ASSERT_TRUE(configure());
  const std::string file = "etc/systemd/network/10-muster-provisioning.network";
  EXPECT_THAT(at(file),
              testing::AllOf(HasSubstr("MACAddress=52:54:00:00:00:01"), HasSubstr("DHCP=ipv4")));
  params_.address_cidr = "10.20.0.11/16";
  params_.gateway = "10.20.0.254";
  params_.dns = {"10.20.0.53"};
  ASSERT_TRUE(configure());
  EXPECT_THAT(at(file),
              testing::AllOf(HasSubstr("Address=10.20.0.11/16"), HasSubstr("Gateway=10.20.0.254"),
                             HasSubstr("DNS=10.20.0.53"), Not(HasSubstr("DHCP="))));
}

TEST_F(InstallTest, systemsWithNetworkManagerOnlyGetItsFile) {
  const std::string file = "etc/NetworkManager/system-connections/muster-provisioning.nmconnection";
  ASSERT_TRUE(configure());
  EXPECT_FALSE(std::filesystem::exists(root_ / file));
  ASSERT_TRUE(io::makeDirs(root_ / "usr/sbin") && io::makeDirs(root_ / "usr/lib/systemd"));
  ASSERT_TRUE(io::writeFileAtomic(root_ / "usr/sbin/NetworkManager", "", 0755));
  ASSERT_TRUE(configure());
  EXPECT_THAT(at(file),
              testing::AllOf(HasSubstr("mac-address=52:54:00:00:00:01"), HasSubstr("method=auto")));
  EXPECT_EQ(modeOf(file), 0600u) << "NetworkManager takes no other";
  params_.address_cidr = "10.20.0.11/16";
  params_.gateway = "10.20.0.254";
  params_.dns = {"10.20.0.53", "10.20.0.54"};
  ASSERT_TRUE(configure());
  EXPECT_THAT(
      at(file),
      testing::AllOf(
          HasSubstr(
              "method=manual\naddress1=10.20.0.11/16,10.20.0.254\ndns=10.20.0.53;10.20.0.54;\n"),
          Not(HasSubstr("method=auto"))));
  ASSERT_TRUE(io::writeFileAtomic(root_ / "usr/lib/systemd/systemd-networkd", "", 0755));
  std::filesystem::remove(root_ / file);
  ASSERT_TRUE(configure());
  EXPECT_FALSE(std::filesystem::exists(root_ / file)) << "one of them brings the interface up";
}

/// Who asks for the own name to tell others where it is must not tell them to call themselves.
TEST_F(InstallTest, theOwnNameLeadsToTheAddressThatOthersUse) {
  ASSERT_TRUE(configure());
  EXPECT_EQ(at("etc/hosts"), "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
      << "by DHCP: the address is not known yet";
  params_.address_cidr = "10.20.0.11/16";
  ASSERT_TRUE(configure());
  EXPECT_THAT(at("etc/hosts"), testing::EndsWith("\n10.20.0.11 gpu001\n"));
  EXPECT_THAT(at("etc/hosts"), Not(HasSubstr("127.0.1.1")));
}

TEST_F(InstallTest, aDeclaredNetworkReplacesThatOfTheProvisioningNic) {
  ASSERT_TRUE(configure());
  const std::string single = "etc/systemd/network/10-muster-provisioning.network";
  EXPECT_NE(at(single), "(missing)");
  params_.address_cidr = "10.20.0.11/16";
  auto& network = params_.network.emplace();
  network.provisioning = {"52:54:00:00:00:01", "boot", "10.20.0.11/16", {}, {"10.20.0.1"}};
  network.search = {"hall-2.example.com"};
  wire::NetworkLink boot;
  boot.name = "boot";
  boot.mac = "52:54:00:00:00:01";
  boot.addresses = {"10.20.0.11/16"};
  network.links = {boot};
  ASSERT_TRUE(configure());
  EXPECT_EQ(at(single), "(missing)") << "by its MAC it would fit bonds and VLANs over the NIC too";
  EXPECT_THAT(at("etc/systemd/network/10-muster-boot.network"),
              testing::AllOf(HasSubstr("Name=boot"), HasSubstr("Address=10.20.0.11/16")));
  EXPECT_THAT(at("etc/systemd/network/10-muster-boot.link"),
              HasSubstr("PermanentMACAddress=52:54:00:00:00:01"));
  EXPECT_EQ(at("etc/muster/network.json"), wire::toJson(network)) << "for the check after boot";
  EXPECT_THAT(at("etc/hosts"), HasSubstr("10.20.0.11 gpu001.hall-2.example.com gpu001\n"));
}

TEST_F(InstallTest, canBeDoneAgain) {
  ASSERT_TRUE(configure());
  const auto again = configure();
  EXPECT_TRUE(again) << again.error().str();
}

TEST_F(InstallTest, secureBootGetsShimWhereFirmwareLooksAndGrubBesideIt) {
  const auto esp = folder_ / "esp";
  const SignedLoader none{folder_ / "no-shim", folder_ / "no-grub"};
  const auto without = installSignedLoader(esp, none);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().str(),
              testing::AllOf(HasSubstr("no-shim"), HasSubstr("muster image build")));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "shim", "SHIM"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "grub", "GRUB"));
  ASSERT_TRUE(io::writeFileAtomic(esp / "EFI/BOOT/BOOTX64.EFI", "what grub-install put there"));
  const auto done = installSignedLoader(esp, {folder_ / "shim", folder_ / "grub"});
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(io::readFile(esp / "EFI/BOOT/BOOTX64.EFI").value_or(""), "SHIM");
  EXPECT_EQ(io::readFile(esp / "EFI/BOOT/grubx64.efi").value_or(""), "GRUB");
  EXPECT_THAT(io::readFile(esp / "EFI/debian/grub.cfg").value_or(""),
              HasSubstr("source ($root)/grub/grub.cfg"));
}

TEST_F(InstallTest, theBootLoaderNamesTheRootByItsPartition) {
  const auto text = grubConfiguration(params_, layout_);
  EXPECT_THAT(text, HasSubstr("root=PARTUUID=ROOT-UUID ro console=tty0 console=ttyS0,115200 "
                              "iommu=pt quiet $muster_args $ignition_args\n"));
  EXPECT_THAT(text, HasSubstr("gpt3"));
  EXPECT_THAT(text, Not(HasSubstr("@")));
}

}  // namespace
}  // namespace muster::agent
