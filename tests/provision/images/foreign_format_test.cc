// SPDX-License-Identifier: Apache-2.0
// What an import does not take, made by the programs that make it: it says what it was given.
#include "provision/images/foreign_format.h"

#include "import_folder.h"

namespace muster::provision {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ForeignFormat : public ImportFolder {
 protected:
  void SetUp() override {
    ImportFolder::SetUp();
    if (!IsSkipped())
      sh("$2 tree; ln -s boot/vmlinuz-6.1 tree/vmlinuz; ln -s boot/initrd.img-6.1 tree/initrd.img; "
         "mke2fs -q -t ext4 -d tree raw 24M");
  }
  std::string refusal() {
    const auto done = import("given");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "fs"));
    return done ? std::string("taken") : done.error().str();
  }
};

TEST_F(ForeignFormat, isNamedAndHowToMakeAnImageOfIt) {
  const struct {
    const char* program;  ///< that makes it
    const char* made;
    const char* says;
    const char* advice;
  } cases[] = {
      {"qemu-img", "qemu-img convert -f raw -O vhdx raw given", "a VHDX", "convert -f vhdx"},
      {"qemu-img", "qemu-img convert -f raw -O vpc raw given", "a VHD", "convert -f vpc"},
      {"qemu-img", "qemu-img convert -f raw -O qed raw given", "a QED", "convert -f qed"},
      {"qemu-img", "qemu-img convert -f raw -O qcow raw given", "a qcow of before version 2",
       "convert -f qcow"},
      {"qemu-img", "qemu-img convert -f raw -O parallels raw given", "Parallels", "-f parallels"},
      {"qemu-img", "qemu-img convert -f raw -O vmdk -o subformat=monolithicFlat raw given",
       "the description of a VMDK", "convert both"},
      {"qemu-img",
       "qemu-img convert -f raw -O luks --object secret,id=s,data=abc -o "
       "key-secret=s,iter-time=10 raw given",
       "encrypted (LUKS)", "decrypt it"},
      {"lz4", "lz4 -q raw given", "compressed by lz4", "pack it by zstd"},
      {"xz", "xz --format=lzma -0 -c raw >given", "compressed by lzma", "pack it by zstd"},
      {"cpio", "(cd tree; find . | cpio --quiet -o -H newc) >given", "a cpio archive", "a tar"},
      {"cpio", "(cd tree; find . | cpio --quiet -o -H bin 2>/dev/null) >given", "a cpio archive",
       "a tar"},
      {"zip", "zip -q given.zip raw; mv given.zip given", "a zip archive", "a tar"},
      {"mkfs.xfs", "truncate -s 320M given; mkfs.xfs -q given", "an XFS file system", "ext4"},
      {"mkfs.btrfs", "truncate -s 128M given; mkfs.btrfs -q given", "a btrfs file system", "ext4"},
      {"xorriso", "xorriso -as mkisofs -quiet -R -o given tree 2>/dev/null", "the image of a CD",
       "the disk that comes of it"},
  };
  int made = 0;
  for (const auto& each : cases) {
    if (!io::runChecked(
            {.program = "sh", .args = {"-c", std::string("command -v ") + each.program}}))
      continue;
    sh("rm -f given; " + std::string(each.made));
    EXPECT_THAT(refusal(), AllOf(HasSubstr(each.says), HasSubstr(each.advice))) << each.made;
    ++made;
  }
  EXPECT_GE(made, 6) << "those of qemu-img are always there";
}

TEST_F(ForeignFormat, whatIsOfNoKnownFormatIsSaidToHoldNoSystem) {
  sh("head -c 100000 /dev/urandom | tr '\\0-\\377' 'a-za-za-za-z' >given");
  EXPECT_THAT(refusal(), HasSubstr("neither an ext4 file system nor a partition"));
  sh(": >given");
  EXPECT_THAT(refusal(), HasSubstr("neither an ext4 file system nor a partition"));
}

/// Of these it cannot be told whether they are whole, or nobody can read them.
TEST_F(ForeignFormat, aQcow2ThatIsEncryptedOrHasSubclustersIsRefused) {
  sh("qemu-img convert -f raw -O qcow2 --object secret,id=s,data=abc -o "
     "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10 raw given");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is encrypted"), HasSubstr("qemu-img convert")));
  sh("qemu-img convert -f raw -O qcow2 -o extended_l2=on raw given");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("has subclusters"), HasSubstr("qemu-img convert")));
}

}  // namespace
}  // namespace muster::provision
