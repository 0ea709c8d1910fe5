// SPDX-License-Identifier: Apache-2.0
// What `inventory check` accepted without a word.
#include "tests/inventory/inventory_fixture.h"

#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"

namespace muster::inventory {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MachineRulesTest : public InventoryTest {
 protected:
  /// The profile with more keys, beside what `sections` declares.
  std::vector<std::string> ofProfile(std::string_view keys, std::string_view sections = "") {
    return lines(
        loadYaml(with("image: noble, drivers", fmt::format("image: noble, {}, drivers", keys),
                      with("pools:\n", fmt::format("{}pools:\n", sections)))));
  }
  static constexpr std::string_view kHomes =
      "file_systems:\n  home: {kind: nfs, source: \"10.20.0.9:/e\", mount: /data}\n"
      "  more: {kind: nfs, source: \"10.20.0.9:/f\", mount: /data}\n";
};

TEST_F(MachineRulesTest, addressesThatNoMachineHas) {
  for (const char* mac : {"00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"})
    EXPECT_THAT(complaints("52:54:00:20:01:01", mac), Contains(HasSubstr("is not a MAC address")))
        << mac;
}

TEST_F(MachineRulesTest, aNodeThatIsCalledAsEachHostCallsItself) {
  EXPECT_THAT(complaints("names: login1", "names: localhost"),
              Contains(HasSubstr("a node is called localhost")));
}

TEST_F(MachineRulesTest, twoFileSystemsAtOneMountPoint) {
  EXPECT_THAT(ofProfile("mounts: [home, more]", kHomes),
              ElementsAre(HasSubstr("profile gpu-node: file system home and file system more are "
                                    "both mounted at /data")));
  EXPECT_THAT(ofProfile("mounts: [home], storage: {s: {disks: smallest, volumes: [{name: a, mount: "
                        "/data}]}}",
                        kHomes),
              ElementsAre(HasSubstr("file system home and volume a of storage s are both")));
  EXPECT_THAT(ofProfile("mounts: [more]", kHomes), IsEmpty());
}

TEST_F(MachineRulesTest, layoutsThatTheImageCannotStart) {
  EXPECT_THAT(ofProfile("root: {count: 2, raid: raid1}"),
              ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("RAID needs mdadm"))));
  EXPECT_THAT(ofProfile("storage: {s: {disks: \"size:3TB-\", count: 2, raid: raid1, encrypt: true, "
                        "volumes: [{name: a, mount: /d}]}}"),
              ElementsAre(HasSubstr("RAID needs mdadm"), HasSubstr("encryption needs cryptsetup")));
  EXPECT_THAT(
      lines(loadYaml(with(
          "packages: [linux-generic]", "packages: [linux-generic, mdadm=4.2]",
          with("image: noble, drivers", "image: noble, root: {count: 2, raid: raid1}, drivers")))),
      IsEmpty());
}

TEST_F(MachineRulesTest, anImageForAnotherProcessor) {
  EXPECT_THAT(ofProfile("arch: arm64"),
              ElementsAre(HasSubstr("image noble is for amd64, profile gpu-node is of arm64")));
  // Both of them of arm64 go together, whatever stands in between.
  EXPECT_THAT(
      lines(loadYaml(with("noble: {", "noble: {arch: arm64, ",
                          with("image: noble, drivers", "image: noble, arch: arm64, drivers")))),
      IsEmpty());
  EXPECT_THAT(lines(loadYaml(with("noble: {", "noble: {arch: arm64, "))),
              ElementsAre(HasSubstr("image noble is for arm64, profile gpu-node is of amd64")));
  EXPECT_THAT(ofProfile("arch: riscv"), ElementsAre(HasSubstr("arm64")));
  EXPECT_THAT(lines(loadYaml(with("noble: {", "noble: {arch: arm64, ",
                                  with("image: noble, drivers",
                                       "image: noble, arch: arm64, boot: bios, drivers")))),
              ElementsAre(HasSubstr("machines with arm64 have UEFI firmware, no BIOS")));
}

TEST_F(MachineRulesTest, sizesTheWrongWayRound) {
  EXPECT_THAT(ofProfile("disk: \"size:500GB-400GB\""),
              ElementsAre(HasSubstr("the lower size stands first")));
  EXPECT_THAT(ofProfile("disk: \"size:400GB-500GB\""), IsEmpty());
}

TEST_F(MachineRulesTest, oneHcaOnTwoRails) {
  EXPECT_THAT(ofProfile("rails: [{hca: mlx5_0}, {hca: mlx5_0}]"),
              ElementsAre(HasSubstr("the rails 0 and 1 have the same HCA mlx5_0")));
  EXPECT_THAT(ofProfile("rails: [{hca: a0, pci: \"0000:18:00.0\"}, {hca: a1, pci: "
                        "\"0000:18:00.0\"}]"),
              ElementsAre(HasSubstr("the same PCI address 0000:18:00.0")));
  EXPECT_THAT(ofProfile("rails: [{hca: mlx5_0, gpu: 8}, {hca: mlx5_1, gpu: 1}]"),
              ElementsAre(HasSubstr("rail 0 serves GPU 8, and the node has 8")));
}

TEST_F(MachineRulesTest, constraintsThatNameNothing) {
  EXPECT_THAT(
      complaints("order: [BMC]", "order: [BMC], constraints: [\"BMX >= 2 needs BIOS >= 1.4\"]"),
      ElementsAre(AllOf(HasSubstr("no component of this baseline is \"BMX\""),
                        HasSubstr("did you mean \"BMC\"?"))));
  EXPECT_THAT(complaints("order: [BMC]",
                         "order: [BMC], constraints: [\"B* >= 9 needs nvml.driver >= 570\"]"),
              IsEmpty());
  EXPECT_THAT(
      complaints("order: [BMC]", "order: [BMC], constraints: [\"BMC >= 2 needs BIOS >= 9\"]"),
      ElementsAre(HasSubstr("this baseline breaks it")));
}

TEST_F(MachineRulesTest, twoMachinesInOneUnit) {
  EXPECT_THAT(complaints("rack: r2, unit: 3", "rack: r1, unit: 10"),
              ElementsAre(HasSubstr("gpu001 and login1 are both in unit 10 of rack r1")));
}

TEST_F(MachineRulesTest, racksThatNobodyIsIn) {
  EXPECT_THAT(complaints("nodes:\n", "racks: {r11: {power_watts: 9000}}\nnodes:\n"),
              ElementsAre(HasSubstr("is in rack r11")));
  EXPECT_THAT(complaints("nodes:\n", "racks: {r2: {power_watts: 9000}}\nnodes:\n"), IsEmpty());
}

TEST_F(MachineRulesTest, addressesOfTheOtherFamily) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"address: 10.20.2.1", "address: \"fd00::1\""},
           {"cidr: 10.20.0.0/16", "cidr: \"fd00::/64\""}})
    EXPECT_THAT(complaints(from, to), Contains(HasSubstr("muster has IPv4 only here"))) << to;
  EXPECT_THAT(complaints("libvirt:login1", "https://[fd00::1]"),
              Contains(HasSubstr("give its IPv6 address a name in DNS")));
}

}  // namespace
}  // namespace muster::inventory
