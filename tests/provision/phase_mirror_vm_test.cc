// SPDX-License-Identifier: Apache-2.0
// A mirrored system disk whose writing was interrupted: the RAM OS of a virtual machine makes the
// arrays anew and fetches only what is not in them. Some minutes under TCG, so on request only; no
// kernel of a build machine need have md.
#include "inventory/model/disk_layout.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "tests/provision/vm_site.h"

namespace muster::provision {
namespace {

class MirrorVmTest : public VmSite {
 protected:
  static constexpr double
      kHalf = 0.5,
      kWritten = 0.9;  ///< of the whole task; the certificate is asked for after the chunks

  std::optional<inventory::Image> image() override {
    return inventory::Image{
        "mirror-node",
        inventory::ImageBuild{"bookworm", {"linux-image-amd64", "mdadm", "lvm2"}, ""},
        {},
        inventory::ImageKind::RootFs};
  }
  void declare(inventory::Profile& profile) override {
    profile.disk = "size:5GiB-7GiB";
    profile.root =
        inventory::RootLayout{2, inventory::RaidLevel::Raid1, inventory::RootKey::None, 3};
  }
  std::vector<std::string> parts() override {
    std::vector<std::string> words;
    for (const char* name : {"a", "b"}) {
      const auto disk = folder_ / name;
      if (!std::filesystem::exists(disk)) {
        EXPECT_TRUE(io::writeFileAtomic(disk, ""));
        std::filesystem::resize_file(disk, 6ull << 30);
      }
      words.insert(
          words.end(),
          {"-drive",
           fmt::format("if=none,id={},format=raw,cache=unsafe,file={}", name, disk.string()),
           "-device", fmt::format("virtio-blk-pci,drive={0},serial=DISK-{0}", name)});
    }
    return words;
  }
};

TEST_F(MirrorVmTest, goesOnWhereThePowerWent) {
  doUntil(kImage, kHalf, std::chrono::seconds(900));
  const auto before_the_cut = std::exchange(image_bytes_, 0);
  power(bmc::PowerState::Off);
  bmc().info.power = bmc::PowerState::Off;
  ASSERT_GT(before_the_cut, 10u << 20);

  doUntil(kImage, kWritten, std::chrono::seconds(900));
  std::cout << fmt::format("asked for {} MiB before the cut, {} MiB after it", before_the_cut >> 20,
                           image_bytes_ >> 20)
            << std::endl;
  const auto whole = std::filesystem::file_size(image_->pack);
  EXPECT_LT(image_bytes_, whole - before_the_cut / 2) << "of " << whole;
  EXPECT_GT(image_bytes_ + before_the_cut, whole * 9 / 10) << "nothing is left out";
}

}  // namespace
}  // namespace muster::provision
