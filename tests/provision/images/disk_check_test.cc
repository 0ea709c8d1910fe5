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

TEST_F(WholeDiskImport, aQcow2ThatIsDamagedInsideIsRefused) {
  // The L2 table's entries lead behind the end of the file.
  sh("qemu-img convert -f raw -O qcow2 disk disk.qcow2; printf "
     "'\\200\\0\\0\\377\\0\\0\\0\\0' | dd of=disk.qcow2 bs=1 seek=$((4 * 65536)) conv=notrunc "
     "status=none");
  if (refusal("disk.qcow2").empty())
    sh("qemu-img check -f qcow2 disk.qcow2 >/dev/null");  // the tool sees nothing either
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
}

}  // namespace
}  // namespace muster::provision
