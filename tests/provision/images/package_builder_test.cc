// SPDX-License-Identifier: Apache-2.0
// Builds the RAM OS and the demo's node image from Debian packages, and looks inside.
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/images.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <iostream>

namespace muster::provision {
namespace {

constexpr std::uint64_t kMaxInitrdBytes = 110u << 20;
constexpr std::uint64_t kMaxPackBytes = 300u << 20;

void say(std::string_view text) { std::cout << text << std::endl; }

std::filesystem::path cacheFolder() {
  if (const char* cache = std::getenv("MUSTER_CACHE")) return cache;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/tmp") / ".cache/muster";
}

class ImageBuildTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "building images needs root";
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent", "#!/bin/sh\n", 0755));
    store_ = openImageStore({cacheFolder(), folder_ / "agent", *io::SigningKey::generate()});
  }
  void TearDown() override {
    if (!built_index_.empty()) std::filesystem::remove(built_index_);
  }

  test::TempFolder folder_;
  std::unique_ptr<ImageStore> store_;
  std::filesystem::path built_index_;  ///< signed with this test's own key; not for keeping
};

TEST_F(ImageBuildTest, ramOsIsSmallAndHasWhatTheWriterNeeds) {
  const auto ramos = store_->buildRamOs(Architecture::Amd64, say);
  ASSERT_TRUE(ramos) << ramos.error().str();
  EXPECT_LT(std::filesystem::file_size(ramos->initrd), kMaxInitrdBytes);
  const auto list = io::runChecked(
      {.program = "sh",
       .args = {"-c", "zstd -dcq \"$1\" | cpio --quiet -t", "sh", ramos->initrd.string()}});
  ASSERT_TRUE(list) << list.error().str();
  for (const char* name :
       {"\ninit\n", "usr/sbin/sfdisk\n", "usr/sbin/grub-install\n", "usr/sbin/resize2fs\n",
        "usr/sbin/mkfs.vfat\n", "usr/bin/mount\n", "usr/sbin/nvme\n",
        "usr/lib/grub/i386-pc/kernel.img\n", "usr/lib/grub/x86_64-efi/kernel.img\n",
        "kernel/drivers/block/virtio_blk.ko\n", "kernel/drivers/nvme/host/nvme.ko\n",
        "/mlx5_core.ko\n", "/megaraid_sas.ko\n"}) {
    EXPECT_THAT(*list, testing::HasSubstr(name));
  }
  std::filesystem::remove_all(ramos->agent_initrd.parent_path());
}

TEST_F(ImageBuildTest, nodeImageIsPackedAndFreeOfThisMachine) {
  const inventory::Image image{
      "bookworm-gpu",
      inventory::ImageBuild{"bookworm", {"linux-image-amd64", "slurmd", "munge"}, ""},
      {}};
  const auto built = store_->build(image, say);
  ASSERT_TRUE(built) << built.error().str();
  built_index_ = built->index;
  EXPECT_LT(std::filesystem::file_size(built->pack), kMaxPackBytes);
  // The pack's frames one after the other are the file system without its empty chunks: enough to
  // find text in.
  const auto leak =
      io::runBlocking({.program = "sh",
                       .args = {"-c",
                                "zstd -dcq \"$1\" | grep -a -c -F \"nameserver $(sed -n "
                                "'s/^nameserver //p' /etc/resolv.conf | head -n 1)\"",
                                "sh", built->pack.string()}});
  ASSERT_TRUE(leak);
  EXPECT_EQ(leak->out, "0\n") << "this machine's resolv.conf is in the image";
}

}  // namespace
}  // namespace muster::provision
