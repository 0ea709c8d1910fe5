// SPDX-License-Identifier: Apache-2.0
// An NVMe disk that comes with sectors of 512 bytes and is declared with 4,096: formatted by the
// RAM OS's nvme-cli on QEMU's controller, made into a file system, and mounted by the installed
// system. Some minutes under TCG, so on request only.
#include "inventory/model/disk_layout.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "tests/provision/vm_site.h"

#include <fstream>

namespace muster::provision {
namespace {

using ::testing::HasSubstr;

class SectorsVmTest : public VmSite {
 protected:
  static constexpr std::uint64_t kFirstPartition = 1u << 20, kSuperblock = kFirstPartition + 1024;

  std::optional<inventory::Image> image() override {
    return inventory::Image{"disk-node",
                            inventory::ImageBuild{"bookworm", {"linux-image-amd64"}, ""},
                            {},
                            inventory::ImageKind::RootFs};
  }
  void declare(inventory::Profile& profile) override {
    profile.disk = "serial:SYS";
    inventory::StorageSet scratch;
    scratch.name = "scratch";
    scratch.disks = "serial:NVME1";
    scratch.sector_bytes = 4096;
    scratch.volumes = {{"scratch", 0, inventory::FileSystem::Ext4, "/scratch"}};
    profile.storage = {scratch};
  }
  std::vector<std::string> parts() override {
    for (const auto& [name, gib] : {std::pair{"system", 4ull}, {"nvme", 2ull}})
      if (const auto disk = folder_ / name; !std::filesystem::exists(disk)) {
        EXPECT_TRUE(io::writeFileAtomic(disk, ""));
        std::filesystem::resize_file(disk, gib << 30);
      }
    return {
        "-drive",
        fmt::format("if=none,id=s,format=raw,cache=unsafe,file={}", (folder_ / "system").string()),
        "-device",
        "virtio-blk-pci,drive=s,serial=SYS,bootindex=1",
        "-drive",
        fmt::format("if=none,id=n0,format=raw,cache=unsafe,file={}", (folder_ / "nvme").string()),
        "-device",
        "nvme,drive=n0,serial=NVME1"};
  }
  std::string bytesAt(std::uint64_t offset, std::size_t count) {
    std::ifstream in(folder_ / "nvme", std::ios::binary);
    in.seekg(static_cast<std::streamoff>(offset));
    std::string bytes(count, '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(count));
    return bytes;
  }
};

TEST_F(SectorsVmTest, areGivenToTheDiskBeforeItIsDivided) {
  mustDo(kImage, std::chrono::seconds(1500));
  ASSERT_TRUE(state());
  EXPECT_EQ(state()->mode, wire::Mode::Disk);
  EXPECT_EQ(bytesAt(4096, 8), "EFI PART") << "the partition table lies in the second sector";
  EXPECT_NE(bytesAt(512, 8), "EFI PART");
  EXPECT_EQ(bytesAt(kSuperblock + 0x38, 2), "\x53\xef") << "ext4 in the first partition";
}

}  // namespace
}  // namespace muster::provision
