// SPDX-License-Identifier: Apache-2.0
// ext4 file systems that e2fsck finds sound and no node starts, made by mke2fs.
#include "provision/images/ext_superblock.h"

#include "import_folder.h"

#include <fcntl.h>

namespace muster::provision {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ExtSuperblock : public ImportFolder {
 protected:
  void SetUp() override {
    ImportFolder::SetUp();
    if (!IsSkipped())
      sh("$2 tree; ln -s boot/vmlinuz-6.1 tree/vmlinuz; ln -s boot/initrd.img-6.1 tree/initrd.img");
  }
  /// What an import says of the tree in a file system made with these options.
  std::string refusal(const std::string& options, const std::string& bytes = "24M") {
    sh("rm -f raw; mke2fs -q -F " + options + " -d tree raw " + bytes +
       " 2>/dev/null; e2fsck -fn raw >/dev/null 2>&1");
    return refusalOf("raw");
  }
  std::string refusalOf(const std::string& name) {
    const auto done = import(name);
    return done ? std::string() : done.error().str();
  }
};

TEST_F(ExtSuperblock, whatNodesMountAndGrubReadsIsTaken) {
  for (const char* options :
       {"-t ext4", "-t ext4 -b 1024", "-t ext4 -b 4096", "-t ext4 -I 128", "-t ext3", "-t ext2",
        "-t ext4 -O ^has_journal", "-t ext4 -O ^64bit,^metadata_csum", "-t ext4 -O large_dir",
        "-t ext4 -O metadata_csum_seed", "-t ext4 -O encrypt", "-t ext4 -b 4096 -O bigalloc",
        "-t ext4 -O orphan_file"})
    EXPECT_EQ(refusal(options), "") << options;
}

TEST_F(ExtSuperblock, whatGrubDoesNotReadIsRefused) {
  for (const char* feature : {"inline_data", "ea_inode", "casefold"})
    EXPECT_THAT(refusal(std::string("-t ext4 -O ") + feature),
                AllOf(HasSubstr("GRUB, which starts it on nodes, cannot read its file system"),
                      HasSubstr("make it anew without"), HasSubstr(feature)));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "fs"));
}

/// mke2fs makes them with a warning.
TEST_F(ExtSuperblock, blocksLargerThanAPageAreRefused) {
  EXPECT_THAT(refusal("-t ext4 -b 8192", "200M"),
              AllOf(HasSubstr("blocks of 8192 bytes"), HasSubstr("make it by mke2fs -b 4096")));
  EXPECT_THAT(refusal("-t ext4 -b 65536", "200M"), HasSubstr("blocks of 65536 bytes"));
}

TEST_F(ExtSuperblock, aJournalOnAnotherDeviceIsRefused) {
  // By debugfs, because mke2fs wants a block device for it: the journal's inode is 0 then.
  ASSERT_EQ(refusal("-t ext4"), "");
  sh("debugfs -w -R 'ssv journal_inum 0' raw 2>/dev/null; debugfs -w -R 'ssv journal_dev 0x801' "
     "raw 2>/dev/null");
  EXPECT_THAT(refusalOf("raw"), AllOf(HasSubstr("journal of its file system is on another device"),
                                      HasSubstr("tune2fs -O ^has_journal")));
}

/// The same of a partition of a disk that is taken as it is.
TEST_F(ExtSuperblock, aDisksOwnLoaderStartsNoneThatNoKernelMounts) {
  kind = inventory::ImageKind::Disk;
  sh("\"$(dirname \"$2\")\"/make_disk.sh tree disk; mke2fs -q -F -t ext4 -b 8192 -d tree large 32M "
     "2>/dev/null; dd if=large of=disk bs=512 seek=18432 conv=notrunc status=none");
  EXPECT_THAT(refusalOf("disk"),
              AllOf(HasSubstr("partition 2"), HasSubstr("blocks of 8192 bytes")));
}

TEST_F(ExtSuperblock, itsSizeIsWhatMke2fsMade) {
  sh("mke2fs -q -F -t ext4 -b 1024 one 3M; mke2fs -q -F -t ext4 -b 4096 two 5M; head -c 1100 one "
     ">short; head -c 1M /dev/zero >none; cat none two >behind");
  const auto bytes = [this](const char* name, std::uint64_t offset) {
    const io::Fd fd(::open((folder_ / name).c_str(), O_RDONLY | O_CLOEXEC));
    return extBytes(fd.get(), offset);
  };
  EXPECT_EQ(bytes("one", 0), 3u << 20);
  EXPECT_EQ(bytes("two", 0), 5u << 20);
  EXPECT_EQ(bytes("behind", 1u << 20), 5u << 20);
  EXPECT_EQ(bytes("short", 0), 0u);
  EXPECT_EQ(bytes("none", 0), 0u);
}

}  // namespace
}  // namespace muster::provision
