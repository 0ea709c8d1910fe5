// SPDX-License-Identifier: Apache-2.0
// A node with arm64 (docs/adr/0315 to 0317): QEMU's board `virt` with UEFI firmware for AArch64
// gets shim and GRUB by TFTP, starts the RAM OS for its processor, and its agent enrolls and
// reports; then it is given a system, which starts from its disk.
#include "provision/images/apt_system.h"
#include "tests/provision/vm_site.h"

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kCode = "/usr/share/AAVMF/AAVMF_CODE.fd";
constexpr const char* kVariables = "/usr/share/AAVMF/AAVMF_VARS.fd";
constexpr std::chrono::minutes kBootLimit{8};

class Arm64Node : public VmSite {
 protected:
  void SetUp() override {
    if (!fs::exists(kCode)) GTEST_SKIP() << "needs qemu-efi-aarch64 and qemu-system-arm";
    if (!fs::exists(test::binFolder() / "arm64/muster-agent"))
      GTEST_SKIP() << "no agent for arm64: ./run build arm64";
    VmSite::SetUp();
  }
  Architecture architecture() override { return Architecture::Arm64; }
  std::optional<inventory::Image> image() override { return std::nullopt; }
  io::Command emulator() override {
    io::Command command{.program = "qemu-system-aarch64"};
    // pauth-impdef: return addresses are signed by a cheap function, which emulation is slow
    // without.
    command.args = {
        "-machine", "virt,accel=tcg,gic-version=3", "-cpu", "max,pauth-impdef=on", "-smp", "2"};
    return command;
  }
  std::vector<std::string> parts() override {
    const auto variables = folder_ / "variables";
    if (!fs::exists(variables)) fs::copy_file(kVariables, variables);
    return {"-drive", std::string("if=pflash,format=raw,unit=0,readonly=on,file=") + kCode,
            "-drive", "if=pflash,format=raw,unit=1,file=" + variables.string(),
            // Nobody answers there, and the firmware would wait.
            "-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n", "-drive",
            "if=none,id=d,format=raw,file=" + disk().string(), "-device",
            "virtio-blk-pci,drive=d,serial=D1,bootindex=5"};
  }
  fs::path disk() {
    const auto disk = folder_ / "disk";
    if (!fs::exists(disk)) {
      EXPECT_TRUE(io::writeFileAtomic(disk, ""));
      fs::resize_file(disk, 8ull << 30);
    }
    return disk;
  }
};

TEST_F(Arm64Node, bootsTheRamOsOfItsProcessorAndReports) {
  mustDo(kInspected, kBootLimit);
  const auto console = consoleOf(1);
  EXPECT_THAT(console, HasSubstr("muster: gpu001 boots into the RAM OS"));
  EXPECT_THAT(console, HasSubstr("muster: [")) << "the RAM OS's own words";
  EXPECT_THAT(console, Not(HasSubstr("cannot be brought up")));
  ASSERT_TRUE(state());
  const auto hardware = state()->hardware;
  EXPECT_EQ(hardware.arch, "arm64");
  EXPECT_EQ(hardware.cpus, 2);
  EXPECT_EQ(hardware.disks.size(), 1u);
}

/// The image is built here, of packages whose scripts run by binfmt_misc; or it is taken from a
/// file, MUSTER_ARM64_ROOT, a tar of such a system.
class Arm64Disk : public Arm64Node {
 protected:
  static const char* tar() { return std::getenv("MUSTER_ARM64_ROOT"); }
  void SetUp() override {
    if (const auto runs = checkRunsProgramsOf(Architecture::Arm64); !tar() && !runs)
      GTEST_SKIP() << runs.error().str();
    Arm64Node::SetUp();
  }
  std::optional<inventory::Image> image() override {
    if (tar())
      return inventory::Image{"arm64-node",
                              inventory::ImageImport{tar(), *io::sha256File(tar())},
                              {},
                              inventory::ImageKind::RootFs,
                              Architecture::Arm64};
    return inventory::Image{"arm64-node",
                            inventory::ImageBuild{"bookworm", {"linux-image-arm64"}, ""},
                            {},
                            inventory::ImageKind::RootFs,
                            Architecture::Arm64};
  }
};

TEST_F(Arm64Disk, isGivenASystemThatStartsFromItsDisk) {
  mustDo(kImage, std::chrono::seconds(2400));
  ASSERT_TRUE(state());
  EXPECT_EQ(state()->image_digest, image_->digest);
  EXPECT_EQ(state()->hardware.arch, "arm64");
  EXPECT_THAT(consoleOf(boots_), HasSubstr("console=ttyAMA0"));
}

}  // namespace
}  // namespace muster::provision
