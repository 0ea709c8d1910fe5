// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/boot_script.h"
#include "provision/netboot/grub_script.h"

#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "tests/golden.h"
#include "tests/provision/clusters.h"

namespace muster::provision {
namespace {

const RamBoot kBoot{"http://10.20.0.1:8080", "https://10.20.0.1:8443", std::string(64, 'c'),
                    "ENROLMENT-1"};

TEST(BootScript, leadsIntoTheRamOs) {
  const auto cluster = twoNodes();
  auto profile = cluster.profiles.at("uefi");
  profile.kernel_args = {"nomodeset", "console=tty0"};
  const auto script = ramBootScript(cluster.nodes[0], profile, kBoot);
  ASSERT_TRUE(script) << script.error().str();
  muster::test::expectGolden("provision/golden/boot-ram.ipxe", *script);
}

TEST(BootScript, grubLeadsIntoTheSameRamOs) {
  const auto cluster = twoNodes();
  auto profile = cluster.profiles.at("uefi");
  profile.kernel_args = {"nomodeset", "x={a;b}"};
  const auto script = ramGrubScript(cluster.nodes[0], profile, kBoot);
  ASSERT_TRUE(script) << script.error().str();
  muster::test::expectGolden("provision/golden/boot-ram.grub", *script);
  profile.kernel_args = {"x';reboot;'"};
  EXPECT_FALSE(ramGrubScript(cluster.nodes[0], profile, kBoot)) << "the word would end its quotes";
}

TEST(BootScript, aLiveImageStartsWithItsOwnKernel) {
  const auto cluster = twoNodes();
  auto boot = kBoot;
  boot.live = std::string(64, 'd');
  const auto ipxe = ramBootScript(cluster.nodes[0], cluster.profiles.at("uefi"), boot);
  const auto grub = ramGrubScript(cluster.nodes[0], cluster.profiles.at("uefi"), boot);
  ASSERT_TRUE(ipxe && grub);
  muster::test::expectGolden("provision/golden/boot-live.ipxe", *ipxe);
  muster::test::expectGolden("provision/golden/boot-live.grub", *grub);
}

TEST(BootScript, othersGoOnWithTheDisk) {
  muster::test::expectGolden("provision/golden/boot-disk.ipxe",
                             diskBootScript("gpu001 has nothing to do here"));
}

TEST(BootScript, refusesWordsThatWouldBreakOut) {
  const auto cluster = twoNodes();
  for (const auto* word : {"a b", "x\nexit", "x||sanboot", "${net0/mac}", "", "x#y", "\"q\""}) {
    auto profile = cluster.profiles.at("uefi");
    profile.kernel_args = {word};
    const auto script = ramBootScript(cluster.nodes[0], profile, kBoot);
    ASSERT_FALSE(script) << word;
    EXPECT_EQ(script.error().code(), ErrorCode::InvalidInput);
  }
}

}  // namespace
}  // namespace muster::provision
