// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/disks.h"

#include "agent/imaging/writer.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<DiskInfo> kTwo{{"/dev/sda", "S1", "naa.5000", 400u << 20},
                                 {"/dev/nvme0n1", "N1", "eui.1", 100u << 20}};

TEST(Disks, theOnlyDiskNeedsNoRule) {
  const auto chosen = chooseDisk({kTwo[0]}, "");
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->path, "/dev/sda");
}

TEST(Disks, severalDisksWithoutARuleAreRefused) {
  const auto chosen = chooseDisk(kTwo, "");
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(chosen.error().text(),
              testing::AllOf(HasSubstr("serial S1"), HasSubstr("serial N1"), HasSubstr("serial:")));
}

TEST(Disks, areChosenByStableIdentity) {
  EXPECT_EQ(chooseDisk(kTwo, "serial:N1")->path, "/dev/nvme0n1");
  EXPECT_EQ(chooseDisk(kTwo, "wwn:naa.5000")->path, "/dev/sda");
  EXPECT_EQ(chooseDisk(kTwo, "smallest")->path, "/dev/nvme0n1");
  EXPECT_EQ(chooseDisk(kTwo, "serial:X").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(chooseDisk(kTwo, "/dev/sda").error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(chooseDisk(kTwo, "serial:").error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(chooseDisk({}, "").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(chooseDisk({kTwo[0], kTwo[0]}, "smallest").error().code(), ErrorCode::Conflict);
}

TEST(Disks, areListedFromSysfs) {
  test::TempFolder root;
  const auto disk = [&root](const std::string& name, const std::string& size,
                            const std::string& serial_file, const std::string& serial) {
    ASSERT_TRUE(io::makeDirs((root / ("sys/block/" + name + "/" + serial_file)).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(root / ("sys/block/" + name + "/size"), size + "\n"));
    ASSERT_TRUE(io::writeFileAtomic(root / ("sys/block/" + name + "/" + serial_file), serial));
  };
  disk("vda", "8388608", "serial", "muster-gpu001");
  disk("nvme0n1", "2048", "device/serial", "NVME  \n");
  disk("sda", "4096", "device/vpd_pg80", std::string("\0\x80\0\4SCSI", 8));
  disk("loop0", "100", "serial", "no");
  disk("sr0", "100", "serial", "no");
  disk("sdb", "0", "serial", "empty-reader");
  std::vector<std::string> serials;
  for (const auto& found : listDisks(root.path())) serials.push_back(found.serial);
  EXPECT_THAT(serials, ElementsAre("NVME", "SCSI", "muster-gpu001"));
  EXPECT_EQ(listDisks(root.path()).back().size_bytes, 4ull << 30);
}

TEST(Disks, partitionsAreNamedAsTheKernelNamesThem) {
  EXPECT_EQ(partitionNode("/dev/vda", 3), "/dev/vda3");
  EXPECT_EQ(partitionNode("/dev/nvme0n1", 3), "/dev/nvme0n1p3");
  EXPECT_EQ(partitionNode("/dev/loop7", 1), "/dev/loop7p1");
}

/// Real tools on a file: what they print is part of the contract.
class DiskContentTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::writeFileAtomic(disk_, ""));
    std::filesystem::resize_file(disk_, 1ull << 30);
  }
  void run(std::string program, std::vector<std::string> args, std::string in = {}) {
    io::Command command{.program = std::move(program), .args = std::move(args)};
    command.stdin_text = std::move(in);
    const auto done = io::runChecked(command);
    ASSERT_TRUE(done) << done.error().str();
  }
  test::TempFolder folder_;
  std::filesystem::path disk_ = folder_ / "disk";
};

TEST_F(DiskContentTest, aBlankDiskHoldsNothing) {
  EXPECT_EQ(describeDiskContent(disk_)->text, "none");
  EXPECT_EQ(describeDiskContent(disk_)->use, wire::DiskUse::Empty);
}

TEST_F(DiskContentTest, aFileSystemIsContent) {
  run("mke2fs", {"-q", "-F", "-t", "ext4", "-L", "data", disk_.string()});
  EXPECT_THAT(describeDiskContent(disk_)->text, HasSubstr("ext4 \"data\""));
  EXPECT_EQ(describeDiskContent(disk_)->use, wire::DiskUse::Other);
}

TEST_F(DiskContentTest, foreignPartitionsAreContent) {
  run("sfdisk", {"--quiet", disk_.string()}, "label: gpt\nsize=10MiB, name=\"precious\"\n");
  EXPECT_THAT(describeDiskContent(disk_)->text, HasSubstr("precious"));
}

TEST_F(DiskContentTest, anEmptyPartitionTableIsContent) {
  run("sfdisk", {"--quiet", disk_.string()}, "label: gpt\n");
  EXPECT_THAT(describeDiskContent(disk_)->text, HasSubstr("empty partition table"));
  EXPECT_EQ(describeDiskContent(disk_)->use, wire::DiskUse::Other);
}

TEST_F(DiskContentTest, aHalfWrittenSystemIsNothingAndAWholeOneIsContent) {
  const auto first = divideDisk(disk_);
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_FALSE(first->kept);
  EXPECT_EQ(first->root_partuuid.find_first_of("ABCDEF"), std::string::npos)
      << "udev's links are in small letters";
  EXPECT_EQ(first->root_partuuid.size(), 36u);
  EXPECT_EQ(describeDiskContent(disk_)->text, "none");
  EXPECT_EQ(describeDiskContent(disk_)->use, wire::DiskUse::Empty);
  ASSERT_TRUE(markComplete(disk_, kRootPartition));
  EXPECT_EQ(describeDiskContent(disk_)->text, "a system installed by muster");
  EXPECT_EQ(describeDiskContent(disk_)->use, wire::DiskUse::System);
  const auto again = divideDisk(disk_);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(again->kept);
  EXPECT_EQ(again->root_partuuid, first->root_partuuid);
  EXPECT_EQ(describeDiskContent(disk_)->text, "none")
      << "from the moment of rewriting it is half-written again";
  EXPECT_EQ(describeDiskContent(disk_)->use, wire::DiskUse::Empty);
}

TEST_F(DiskContentTest, whatCannotBeReadIsAnErrorAndNotEmpty) {
  EXPECT_FALSE(describeDiskContent(folder_ / "missing"));
  EXPECT_FALSE(readLayout("not json"));
  EXPECT_FALSE(readLayout("{\"partitiontable\":{\"label\":\"dos\",\"partitions\":[]}}"));
}

}  // namespace
}  // namespace muster::agent
