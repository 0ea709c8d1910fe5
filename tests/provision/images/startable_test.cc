// SPDX-License-Identifier: Apache-2.0
// Trees that no machine could start, one thing wrong with each: the import says which.
#include "provision/images/startable.h"

#include "import_folder.h"

namespace muster::provision {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class Startable : public ImportFolder {
 protected:
  void SetUp() override {
    ImportFolder::SetUp();
    if (!IsSkipped()) sh("$2 tree");
  }
};

TEST_F(Startable, aWholeTreeIsTaken) { EXPECT_THAT(refusalOfTree(), IsEmpty()); }

TEST_F(Startable, eachThingThatIsMissingIsNamed) {
  const struct {
    const char* change;
    const char* says;
  } cases[] = {
      {"rm tree/boot/vmlinuz-6.1", "install a kernel"},
      {"rm tree/boot/initrd.img-6.1", "initrd.img"},
      {": >tree/boot/initrd.img-6.1", "/boot/initrd.img-6.1 is empty"},
      {"ln -s boot/vmlinuz-5.10 tree/vmlinuz",
       "/vmlinuz leads to /boot/vmlinuz-5.10, which is not there"},
      {"ln -s vmlinuz tree/vmlinuz", "leads in a circle"},
      {"mkfifo tree/vmlinuz", "/vmlinuz is not a regular file"},
      {"mknod tree/initrd.img c 1 5", "/initrd.img is not a regular file"},
      {"mkdir tree/vmlinuz", "/vmlinuz is not a regular file"},
      {"truncate -s 2000 tree/boot/vmlinuz-6.1", "cut short"},
      {"head -c 4096 /dev/zero >tree/boot/vmlinuz-6.1", "no kernel for x86-64"},
      {"printf '\\0' | dd of=tree/boot/vmlinuz-6.1 bs=1 seek=566 conv=notrunc status=none",
       "32 bits"},
      {"truncate -s -9 tree/boot/initrd.img-6.1", "cut short"},
      {"echo text >tree/boot/initrd.img-6.1", "no archive that a kernel unpacks"},
      {"echo text | zstd -q >tree/boot/initrd.img-6.1", "no archive that a kernel unpacks"},
      {"printf '\\004\\042\\115\\030\\144' >tree/boot/initrd.img-6.1", "compress it with lz4 -l"},
      {"printf '\\211LZO\\0\\r\\n' >tree/boot/initrd.img-6.1", "by lzop"},
      {"rm tree/usr/sbin/init", "no /sbin/init that could start"},
      {"rm tree/sbin", "no /sbin/init that could start"},
      {"rm tree/usr/lib/systemd/systemd", "which is not there"},
      {"echo '#!/bin/sh' >tree/usr/lib/systemd/systemd", "no ELF file"},
      {"truncate -s 9000 tree/usr/lib/systemd/systemd", "cut short"},
      {"chmod 644 tree/usr/lib/systemd/systemd", "may not be executed"},
      {"cp tree/usr/lib/systemd/systemd tree/usr/bin/busybox; ln -sf ../bin/busybox "
       "tree/usr/sbin/init; rm tree/usr/lib/systemd/systemd",
       "not systemd, which starts muster's agent"},
      {"printf '\\267' | dd of=tree/usr/lib/systemd/systemd bs=1 seek=18 conv=notrunc status=none",
       "AArch64, not for x86-64"},
      {"printf '\\267' | dd of=tree/usr/lib/x86_64-linux-gnu/libc.so.6 bs=1 seek=18 conv=notrunc "
       "status=none",
       "AArch64, not for x86-64"},
      {"rm tree/usr/lib/x86_64-linux-gnu/libc.so.6",
       "no libc.so.6, which /usr/lib/systemd/systemd needs"},
      {"truncate -s 1M tree/usr/lib/x86_64-linux-gnu/libc.so.6", "cut short"},
      {"rm tree/lib64", "the loader of its programs is missing"},
      {"chmod 0700 tree", "its / has the mode 0700"},
      {"chmod 0750 tree/usr", "its /usr has the mode 0750"},
      {"chmod 0700 tree/etc", "its /etc has the mode 0700"},
      {"chmod 4754 tree/usr/lib", "its /usr/lib has the mode 4754"},
      {"ln -sfn ../../../../../lib64 tree/lib64", "leads in a circle"},
      {"sed -i 's/GLIBC_2\\.2[89]/GLIBC_2.17/g; s/GLIBC_2\\.[3-9][0-9]/GLIBC_2.17/g' "
       "tree/usr/lib/x86_64-linux-gnu/libc.so.6",
       "needs glibc 2.28 or later"},
  };
  for (const auto& each : cases) {
    sh("rm -rf tree; $2 tree; " + std::string(each.change));
    EXPECT_THAT(refusalOfTree(), HasSubstr(std::string(each.says).starts_with("needs glibc")
                                               ? "need glibc 2.28 or later"
                                               : each.says))
        << each.change;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "fs")) << each.change;
  }
}

/// The same for nodes of the other processor.
TEST_F(Startable, ofArm64EachThingThatIsMissingIsNamed) {
  architecture = Architecture::Arm64;
  EXPECT_THAT(refusalOfTree(), AllOf(HasSubstr("a kernel for x86, not for AArch64"),
                                     HasSubstr("is for x86-64, not for AArch64")));
  sh("$3 tree");
  EXPECT_THAT(refusalOfTree(), IsEmpty());
  architecture = Architecture::Amd64;
  EXPECT_THAT(refusalOfTree(), AllOf(HasSubstr("a kernel for AArch64, not for x86-64"),
                                     HasSubstr("is for AArch64, not for x86-64")));
  architecture = Architecture::Arm64;
  const struct {
    const char* change;
    const char* says;
  } cases[] = {
      {"gzip -n tree/boot/vmlinuz-6.1; mv tree/boot/vmlinuz-6.1.gz tree/boot/vmlinuz-6.1", ""},
      {"gzip -n tree/boot/vmlinuz-6.1; head -c 60 tree/boot/vmlinuz-6.1.gz >tree/boot/vmlinuz-6.1; "
       "rm tree/boot/vmlinuz-6.1.gz",
       "does not unpack"},
      {"for i in 1 2; do gzip -n tree/boot/vmlinuz-6.1; mv tree/boot/vmlinuz-6.1.gz "
       "tree/boot/vmlinuz-6.1; done",
       "packed twice"},
      {"truncate -s 900 tree/boot/vmlinuz-6.1", "cut short"},
      {"truncate -s 40 tree/boot/vmlinuz-6.1", "no kernel for AArch64"},
      {"printf 'XX' | dd of=tree/boot/vmlinuz-6.1 bs=1 conv=notrunc status=none",
       "no program for UEFI"},
      {"rm tree/usr/lib/ld-linux-aarch64.so.1", "the loader of its programs is missing"},
      {"rm tree/usr/lib/aarch64-linux-gnu/libc.so.6", "no libc.so.6"},
      {"sed -i 's/GLIBC_2\\.36/GLIBC_2.17/' tree/usr/lib/aarch64-linux-gnu/libc.so.6",
       "need glibc 2.28 or later"},
  };
  for (const auto& each : cases) {
    sh("rm -rf tree; $2 tree; $3 tree; " + std::string(each.change));
    if (*each.says == '\0')
      EXPECT_THAT(refusalOfTree(), IsEmpty()) << each.change;
    else
      EXPECT_THAT(refusalOfTree(), HasSubstr(each.says)) << each.change;
  }
}

TEST_F(Startable, systemsOfSuseAreRefusedByName) {
  for (const char* id : {"ID=\"sles\"", "NAME=x\nID=opensuse-leap", "ID=debian\nID=sle-micro"}) {
    sh("printf '" + std::string(id) + "\\nVERSION_ID=15\\n' >tree/etc/os-release");
    EXPECT_THAT(refusalOfTree(), HasSubstr("does not support")) << id;
  }
  sh("echo \"ID='sles'\" >tree/etc/os-release");
  EXPECT_THAT(refusalOfTree(), HasSubstr("(ID=sles)")) << "a shell takes both quotes";
  sh("printf 'ID_LIKE=\"suse\"\\nID=debian\\n' >tree/etc/os-release");
  EXPECT_THAT(refusalOfTree(), IsEmpty());
}

TEST_F(Startable, aSystemThatEnforcesSelinuxNeedsWhatLabelsItsFiles) {
  sh("mkdir -p tree/etc/selinux; printf 'SELINUX=enforcing\\nSELINUXTYPE=mls\\n' "
     ">tree/etc/selinux/config");
  EXPECT_THAT(refusalOfTree(), AllOf(HasSubstr("install selinux-policy-mls into it"),
                                     HasSubstr("install policycoreutils into it")));
  sh("mkdir -p tree/etc/selinux/mls/contexts/files; touch "
     "tree/etc/selinux/mls/contexts/files/file_contexts; cp /usr/bin/true tree/usr/sbin/setfiles");
  EXPECT_THAT(refusalOfTree(), IsEmpty());
  kind = inventory::ImageKind::Live;
  EXPECT_THAT(refusalOfTree(),
              HasSubstr("files that are written into a live image have no labels"));
  sh("sed -i s/enforcing/permissive/ tree/etc/selinux/config");
  EXPECT_THAT(refusalOfTree(), IsEmpty());
}

TEST_F(Startable, allThatIsMissingIsToldAtOnce) {
  sh("rm tree/usr/sbin/init; ln -s boot/nothing tree/vmlinuz");
  EXPECT_THAT(refusalOfTree(), AllOf(HasSubstr("no kernel"), HasSubstr("/sbin/init")));
}

TEST_F(Startable, aRealKernelsInitrdMayBeginWithMicrocode) {
  sh("mkdir early; echo microcode >early/x; (cd early; echo x | cpio --quiet -o -H newc) >all; "
     "cat tree/boot/initrd.img-6.1 >>all; cp all tree/boot/initrd.img-6.1");
  EXPECT_THAT(refusalOfTree(), IsEmpty());
  for (const char* packer : {"gzip -c", "xz -c --check=crc32", "lzma -c", "bzip2 -c", "cat"}) {
    sh("(cd tree/etc; echo hostname | cpio --quiet -o -H newc) | " + std::string(packer) +
       " >tree/boot/initrd.img-6.1");
    EXPECT_THAT(refusalOfTree(), IsEmpty()) << packer;
  }
}

/// What a kernel unpacks beside zstd.
TEST_F(Startable, anInitrdMayBeCompressedByWhatKernelsKnow) {
  for (const std::string way : {"gzip -c", "xz --check=crc32 -c", "xz --format=lzma -c", "bzip2 -c",
                                "lz4 -q -l -c", "cat"}) {
    if (way.starts_with("lz4") && !io::runBlocking({.program = "lz4", .args = {"-V"}})) continue;
    sh("rm -rf tree; $2 tree; zstd -qdc tree/boot/initrd.img-6.1 >i; " + way +
       " <i >tree/boot/initrd.img-6.1");
    EXPECT_THAT(refusalOfTree(), IsEmpty()) << way;
  }
}

TEST_F(Startable, aLibraryIsFoundWhereTheSystemsLoaderLooks) {
  sh("mkdir -p tree/opt/libs tree/etc/ld.so.conf.d; mv tree/usr/lib/x86_64-linux-gnu/libc.so.6 "
     "tree/opt/libs; echo /opt/libs >tree/etc/ld.so.conf.d/site.conf");
  EXPECT_THAT(refusalOfTree(), IsEmpty());
}

TEST_F(Startable, aLiveImageNeedsTheSameButTheInitrd) {
  kind = inventory::ImageKind::Live;
  sh("rm tree/boot/initrd.img-6.1");
  EXPECT_THAT(refusalOfTree(), IsEmpty());
  sh("echo text >tree/boot/vmlinuz-6.1");
  EXPECT_THAT(refusalOfTree(), HasSubstr("no kernel for x86-64"));
}

/// The same of a file system that somebody has made of it: its "/" is in no listing of its own.
TEST_F(Startable, anExt4ThatOnlyRootMayEnterIsRefused) {
  sh("ln -s boot/vmlinuz-6.1 tree/vmlinuz; ln -s boot/initrd.img-6.1 tree/initrd.img");
  const auto refused = [this](const std::string& change) {
    sh("rm -f raw; mke2fs -q -t ext4 -d tree raw 16M; " + change);
    const auto done = import("raw");
    return done ? std::string() : done.error().str();
  };
  EXPECT_THAT(refused("true"), IsEmpty());
  EXPECT_THAT(refused("debugfs -w -R 'sif / mode 040700' raw 2>/dev/null"),
              AllOf(HasSubstr("its / has the mode 0700"), HasSubstr("give it 0755")));
  EXPECT_THAT(
      refused("for f in etc usr/bin; do debugfs -w -R \"sif $f mode 040700\" raw "
              "2>/dev/null; done"),
      AllOf(HasSubstr("its /etc has the mode 0700"), HasSubstr("its /usr/bin has the mode 0700"),
            testing::Not(HasSubstr("its / has"))));
}

/// EL's "/" and "/usr" are 0555.
TEST_F(Startable, aTreeThatRootItselfMayNotWriteIsTaken) {
  sh("chmod 0555 tree tree/usr tree/usr/bin tree/usr/lib");
  EXPECT_THAT(refusalOfTree(), IsEmpty());
}

/// The partition of a system whose kernel is on another one.
TEST_F(Startable, aPartitionWithoutAKernelIsRefused) {
  sh("rm -r tree/boot/*; mke2fs -q -t ext4 -d tree raw 8M");
  const auto done = import("raw");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), AllOf(HasSubstr("no kernel: /vmlinuz is not there"),
                                        HasSubstr("no initrd: /initrd.img is not there")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "fs"));
}

TEST_F(Startable, aDamagedFileSystemIsRefused) {
  sh("ln -s boot/vmlinuz-6.1 tree/vmlinuz; ln -s boot/initrd.img-6.1 tree/initrd.img; mke2fs -q -t "
     "ext4 -O ^metadata_csum -d tree raw 8M; debugfs -w -R 'clri /etc/hostname' raw 2>/dev/null");
  const auto done = import("raw");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Corrupt);
  EXPECT_THAT(done.error().str(), HasSubstr("e2fsck"));
}

}  // namespace
}  // namespace muster::provision
