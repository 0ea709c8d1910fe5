// SPDX-License-Identifier: Apache-2.0
// Images of whole disks: their boot loader and their system must be there, on any file system that
// the agent installs into.
#include "provision/images/disk_check.h"

#include "import_folder.h"

namespace muster::provision {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class WholeDiskImport : public ImportFolder {
 protected:
  void SetUp() override {
    ImportFolder::SetUp();
    kind = inventory::ImageKind::Disk;
    if (!IsSkipped()) sh("$2 tree; \"$(dirname \"$2\")\"/make_disk.sh tree disk");
  }
  std::string refusal(const std::string& name = "disk") {
    const auto done = import(name);
    return done ? std::string() : done.error().str();
  }
};

TEST_F(WholeDiskImport, aDiskThatStartsByUefiIsTakenAsItIs) {
  EXPECT_EQ(refusal(), "");
  sh("cmp disk fs; qemu-img convert -f raw -O qcow2 disk disk.qcow2; qemu-img convert -f raw -O "
     "vdi "
     "disk disk.vdi");
  EXPECT_EQ(refusal("disk.qcow2"), "");
  EXPECT_EQ(refusal("disk.vdi"), "");
}

TEST_F(WholeDiskImport, withoutABootLoaderForThisArchitectureItIsRefused) {
  sh("printf '\\144\\252' | dd of=disk.efi bs=1 seek=68 conv=notrunc status=none; mdel -i disk.esp "
     "::EFI/BOOT/BOOTX64.EFI; mcopy -i disk.esp disk.efi ::EFI/BOOT/BOOTX64.EFI; dd if=disk.esp "
     "of=disk bs=512 seek=2048 conv=notrunc status=none");
  EXPECT_THAT(refusal(), HasSubstr("machine 0xaa64, not for x86-64"));
  sh("truncate -s 700 disk.efi; printf '\\144\\206' | dd of=disk.efi bs=1 seek=68 conv=notrunc "
     "status=none; mdel -i disk.esp ::EFI/BOOT/BOOTX64.EFI; mcopy -i disk.esp disk.efi "
     "::EFI/BOOT/BOOTX64.EFI; dd if=disk.esp of=disk bs=512 seek=2048 conv=notrunc status=none");
  EXPECT_THAT(refusal(), HasSubstr("BOOTX64.EFI of partition 1: it is cut short"));
  sh("mdel -i disk.esp ::EFI/BOOT/BOOTX64.EFI; dd if=disk.esp of=disk bs=512 seek=2048 "
     "conv=notrunc status=none");
  EXPECT_THAT(refusal(), HasSubstr("no boot loader"));
}

TEST_F(WholeDiskImport, withoutASystemItIsRefused) {
  sh("rm tree/etc/os-release; \"$(dirname \"$2\")\"/make_disk.sh tree disk");
  EXPECT_THAT(refusal(), HasSubstr("none of its partitions holds a Linux system"));
  sh("rm -rf tree; $2 tree; rm tree/boot/vmlinuz-6.1 tree/usr/lib/systemd/systemd; \"$(dirname "
     "\"$2\")\"/make_disk.sh tree disk");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("no kernel"), HasSubstr("sbin/init")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "fs"));
}

TEST_F(WholeDiskImport, aKernelMayBeOnAPartitionOfItsOwn) {
  sh("mkdir boot; mv tree/boot/* boot; mke2fs -q -t ext4 -d boot boot.fs 4M; \"$(dirname "
     "\"$2\")\"/make_disk.sh tree disk; echo 'start=83968,size=8192,type=L' | sfdisk -q --append "
     "disk; "
     "dd if=boot.fs of=disk bs=512 seek=83968 conv=notrunc status=none");
  EXPECT_EQ(refusal(), "");
}

TEST_F(WholeDiskImport, aDamagedPartOfItIsRefused) {
  sh("debugfs -w -R 'clri /etc/hostname' disk.system 2>/dev/null; debugfs -w -R 'clri "
     "/usr/lib/systemd' disk.system 2>/dev/null; dd if=disk.system of=disk bs=512 seek=18432 "
     "conv=notrunc status=none");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("partition 2"), HasSubstr("e2fsck")));
}

/// What a copy that broke off leaves. qemu-img reads zeros behind the end, and its check is content
/// with a qcow2 that lacks less than a cluster, and with every VDI.
TEST_F(WholeDiskImport, aFormatOfAHypervisorThatWasCutShortIsRefused) {
  const struct {
    const char *format, *less;
  } cases[] = {{"qcow2", "-40000"}, {"qcow2", "-512"}, {"vdi", "-2M"}, {"vdi", "-512"}};
  for (const auto& each : cases) {
    sh("qemu-img convert -f raw -O " + std::string(each.format) + " disk cut");
    EXPECT_EQ(refusal("cut"), "") << each.format;
    sh("truncate -s " + std::string(each.less) + " cut; rm fs; qemu-img check -q -f " +
       each.format + " cut");
    EXPECT_THAT(refusal("cut"), AllOf(HasSubstr("cut short"), HasSubstr("says that it has data")))
        << each.format << each.less;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "fs"));
  }
}

/// One whose last cluster is not written to its end is whole: its file may end there.
TEST_F(WholeDiskImport, aQcow2WithPackedClustersIsTaken) {
  sh("qemu-img convert -c -f raw -O qcow2 disk packed");
  EXPECT_EQ(refusal("packed"), "");
}

/// QEMU marks what it found to be damaged, and opens it for reading only.
/// Source: docs/interop/qcow2 of QEMU: incompatible_features, bit 1
TEST_F(WholeDiskImport, aQcow2ThatIsMarkedAsDamagedIsRefused) {
  sh("qemu-img convert -f raw -O qcow2 disk marked; qemu-img check -q -f qcow2 marked; printf "
     "'\\002' | dd of=marked bs=1 seek=79 conv=notrunc status=none; qemu-img info -f qcow2 marked "
     "| "
     "grep -q 'corrupt: true'");
  EXPECT_THAT(refusal("marked"), AllOf(HasSubstr("is marked as damaged"),
                                       HasSubstr("repair it: qemu-img check -r all")));
  sh("qemu-img check -q -r all -f qcow2 marked");
  EXPECT_EQ(refusal("marked"), "") << "what the words say helps";
}

/// A partition that was made smaller than the file system in it: the part behind it is another's.
TEST_F(WholeDiskImport, aFileSystemLargerThanItsPartitionIsRefused) {
  sh("echo ',8M' | sfdisk -q --no-reread -N 2 disk");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("partition 2 has 8388608 bytes"),
                               HasSubstr("the file system in it 33554432")));
  kind = inventory::ImageKind::RootFs;
  EXPECT_THAT(refusal(), AllOf(HasSubstr("a partition has 8388608 bytes"),
                               HasSubstr("the file system in it 33554432")));
}

/// Made by a program, because sfdisk makes none: the third entry lies in the second.
TEST_F(WholeDiskImport, partitionsThatOverlapAreRefused) {
  sh("python3 - <<'END'\n"
     "import struct, zlib\n"
     "file = open('disk', 'r+b')\n"
     "file.seek(1024)\n"
     "entries = bytearray(file.read(128 * 128))\n"
     "entries[256:384] = entries[128:256]\n"
     "entries[256 + 16] ^= 1\n"
     "struct.pack_into('<QQ', entries, 256 + 32, 20480, 30719)\n"
     "file.seek(512)\n"
     "header = bytearray(file.read(92))\n"
     "struct.pack_into('<I', header, 88, zlib.crc32(entries))\n"
     "struct.pack_into('<I', header, 16, 0)\n"
     "struct.pack_into('<I', header, 16, zlib.crc32(bytes(header)))\n"
     "file.seek(512)\n"
     "file.write(header)\n"
     "file.seek(1024)\n"
     "file.write(entries)\n"
     "END\n"
     "sfdisk --verify disk 2>&1 | grep -q overlap");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("partition 2 and partition 3 overlap"),
                               HasSubstr("sfdisk --verify")));
}

/// One that holds all the others is what an extended partition is for.
TEST_F(WholeDiskImport, anExtendedPartitionOfAnMbrIsTaken) {
  sh("rm disk; truncate -s 48M disk; printf 'label: dos\\nstart=2048,size=16384,type=ef\\n"
     "start=18432,size=79000,type=5\\nstart=20480,size=65536,type=83\\n' | sfdisk -q disk; dd "
     "if=disk.esp of=disk bs=512 seek=2048 conv=notrunc status=none; dd if=disk.system of=disk "
     "bs=512 seek=20480 conv=notrunc status=none");
  EXPECT_EQ(refusal(), "");
}

/// An entry of its L2 table leads behind the end of the file.
TEST_F(WholeDiskImport, aQcow2ThatNamesClustersBehindItsEndIsRefused) {
  sh("qemu-img convert -f raw -O qcow2 disk disk.qcow2; printf "
     "'\\200\\0\\0\\377\\0\\0\\0\\0' | dd of=disk.qcow2 bs=1 seek=$((4 * 65536)) conv=notrunc "
     "status=none");
  EXPECT_NE(refusal("disk.qcow2"), "");
}

/// What others have on XFS is read by GRUB's own reader, not by this machine's kernel.
TEST_F(WholeDiskImport, aSystemOnXfsIsLookedAt) {
  if (!io::runChecked({.program = "mkfs.xfs", .args = {"-V"}}))
    GTEST_SKIP() << "mkfs.xfs is not here (xfsprogs)";
  sh("truncate -s 320M xfs; mkfs.xfs -q xfs; mkdir mnt; mount -o loop xfs mnt; cp -a tree/. mnt; "
     "umount mnt; rm -f big; truncate -s 336M big; printf 'label: "
     "gpt\\nstart=2048,size=16384,type=U\\nstart=18432,size=655360,type=L\\n' | sfdisk -q big; dd "
     "if=disk.esp of=big bs=512 seek=2048 conv=notrunc status=none; dd if=xfs of=big bs=512 "
     "seek=18432 conv=notrunc,sparse status=none");
  EXPECT_EQ(refusal("big"), "");
  sh("echo ',200M' | sfdisk -q --no-reread -N 2 big");
  EXPECT_THAT(refusal("big"), AllOf(HasSubstr("partition 2 has 209715200 bytes"),
                                    HasSubstr("the file system in it 335544320")));
}

}  // namespace
}  // namespace muster::provision
