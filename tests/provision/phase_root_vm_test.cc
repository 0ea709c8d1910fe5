// SPDX-License-Identifier: Apache-2.0
// A system disk of two: mirrored, encrypted with a key in the TPM, a volume of LVM on it; written
// by the agent in the RAM OS of a virtual machine with UEFI, started, and started once more from
// one disk alone. Many minutes under TCG, so on request only.
#include "inventory/model/disk_layout.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "tests/provision/vm_site.h"
#include "tests/provision/vm_tpm.h"

namespace muster::provision {
namespace {

using ::testing::HasSubstr;

class RootVmTest : public VmSite {
 protected:
  std::optional<inventory::Image> image() override {
    return inventory::Image{
        "root-node",
        inventory::ImageBuild{"bookworm",
                              {"linux-image-amd64", "mdadm", "lvm2", "cryptsetup-initramfs",
                               "tpm2-tools", "libtss2-tcti-device0"},
                              ""},
        {},
        inventory::ImageKind::RootFs};
  }
  void declare(inventory::Profile& profile) override {
    profile.disk = "size:5GiB-7GiB";
    profile.root =
        inventory::RootLayout{2, inventory::RaidLevel::Raid1, inventory::RootKey::Tpm, 3};
  }
  std::vector<std::string> parts() override {
    for (const char* name : {"a", "b"})
      if (const auto disk = folder_ / name; !std::filesystem::exists(disk)) {
        EXPECT_TRUE(io::writeFileAtomic(disk, ""));
        std::filesystem::resize_file(disk, 6ull << 30);
      }
    auto words = tpm_.parts();
    for (const char* name : {"a", "b"}) {
      if (without_ == name) continue;
      words.insert(words.end(),
                   {"-drive",
                    fmt::format("if=none,id={},format=raw,cache=unsafe,file={}", name,
                                (folder_ / name).string()),
                    "-device",
                    fmt::format("virtio-blk-pci,drive={0},serial=DISK-{0},bootindex={1}", name,
                                name[0] - 'a' + 1)});
    }
    return words;
  }
  VmTpm tpm_{folder_.path()};
  std::string without_;
};

TEST_F(RootVmTest, mirroredEncryptedVolumeStartsAlsoFromOneDisk) {
  mustDo(kImage, std::chrono::seconds(2400));
  ASSERT_TRUE(state());
  EXPECT_EQ(state()->image_digest, image_->digest);
  const int first = boots_;
  EXPECT_THAT(consoleOf(first), HasSubstr("muster-root-crypt"));

  without_ = "a";
  power(bmc::PowerState::On);
  const auto old_boot = state()->boot_id;
  const auto back = test::runAsync(
      io_, gateway_->waitFor(node_, wire::Mode::Disk, old_boot, std::chrono::seconds(600)),
      std::chrono::seconds(700));
  ASSERT_TRUE(back) << back.error().str();
  EXPECT_EQ(back->image_digest, image_->digest);
  std::cout << "started from one disk alone" << std::endl;
}

}  // namespace
}  // namespace muster::provision
