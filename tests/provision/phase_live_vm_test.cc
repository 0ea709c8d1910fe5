// SPDX-License-Identifier: Apache-2.0
// A live image in a virtual machine, from power-on to the agent's call: BIOS, iPXE, the image's
// kernel, the overlay, systemd. Some minutes under TCG, so on request only.
#include "inventory/model/images.h"
#include "tests/provision/vm_site.h"

namespace muster::provision {
namespace {

using ::testing::HasSubstr;

class LiveVmTest : public VmSite {
 protected:
  std::optional<inventory::Image> image() override {
    return inventory::Image{"live-node",
                            inventory::ImageBuild{"bookworm", {"linux-image-amd64"}, ""},
                            {},
                            inventory::ImageKind::Live};
  }
  std::vector<std::string> parts() override {
    const auto disk = folder_ / "disk";
    if (!std::filesystem::exists(disk)) {
      EXPECT_TRUE(io::writeFileAtomic(disk, std::string(8u << 20, 'd')));
    }
    return {"-drive", "if=none,id=d,format=raw,file=" + disk.string(), "-device",
            "virtio-blk-pci,drive=d,serial=DISK1"};
  }
};

TEST_F(LiveVmTest, runsInMemoryAndLeavesTheDiskAlone) {
  ASSERT_TRUE(image_->live);
  mustDo(kImage, std::chrono::seconds(900));
  const auto live = state();
  ASSERT_TRUE(live);
  EXPECT_EQ(live->mode, wire::Mode::Disk);
  EXPECT_EQ(live->image_digest, image_->digest);
  EXPECT_THAT(consoleOf(1), HasSubstr("the live image takes over"));
  EXPECT_EQ(boots_, 1) << "one start: the RAM OS is on the image's kernel";
  mustDo(kOs, std::chrono::seconds(60));
  EXPECT_EQ(*io::readFile(folder_ / "disk"), std::string(8u << 20, 'd'));
  const auto report = gateway_->state(node_)->hardware;
  ASSERT_EQ(report.disks.size(), 1u) << "it sees the disk";
  std::cout << fmt::format("image {} MiB, memory {} MiB\n", image_->size_bytes >> 20,
                           report.memory_bytes >> 20);
}

/// The same machine with an NVMe disk, as QEMU plays one: what the RAM OS's nvme-cli and the
/// specification's numbers make of it.
class NvmeVmTest : public LiveVmTest {
 protected:
  static constexpr std::uint64_t kDiskBytes = 64u << 20;
  std::vector<std::string> parts() override {
    const auto disk = folder_ / "nvme";
    if (!std::filesystem::exists(disk)) {
      EXPECT_TRUE(io::writeFileAtomic(disk, std::string(kDiskBytes, 'd')));
    }
    return {"-smbios", "type=1,serial=SN-1",
            "-drive",  "if=none,id=n0,format=raw,file=" + disk.string(),
            "-device", "nvme,drive=n0,serial=NVME1"};
  }
};

TEST_F(NvmeVmTest, isErasedByItsOwnCommand) {
  mustDo(kInspected, std::chrono::seconds(600));
  ASSERT_EQ(state()->mode, wire::Mode::Ram);
  const wire::AgentTask task{"erase-1", wire::TaskKind::EraseDisks,
                             R"({"node_serial":"SN-1","wipe_allowed":true})",
                             std::chrono::seconds(300)};
  const auto report =
      test::runAsync(io_, gateway_->runTask(node_, task), std::chrono::seconds(330));
  ASSERT_TRUE(report) << report.error().str();
  std::cout << report->result << std::endl;
  const auto json = nlohmann::json::parse(report->result);
  ASSERT_EQ(json["disks"].size(), 1u);
  EXPECT_THAT(json["disks"][0]["method"].get<std::string>(), HasSubstr("nvme-format"));
  EXPECT_GE(json["disks"][0]["places_checked"], 500);
  EXPECT_EQ(io::readFile(folder_ / "nvme")->find('d'), std::string::npos)
      << "nothing of the old content is left";
}

}  // namespace
}  // namespace muster::provision
