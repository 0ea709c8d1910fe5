// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_import.h"

#include "base/io/process.h"
#include "inventory/model/images.h"
#include "kept_images.h"
#include "provision/images/ext_files.h"
#include "provision/images/pack_writer.h"
#include "tests/paths.h"

#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ImageImportTest : public testing::Test {
 protected:
  /// Words of the script: $1 is the folder, $2 makes a tree that starts.
  void sh(const std::string& script) {
    const auto maker = test::sourceFolder() / "tests/provision/images/make_startable_tree.sh";
    const auto done = io::runChecked(
        {.program = "sh",
         .args = {"-ec", "cd \"$1\"; " + script, "sh", folder_.path().string(), maker.string()}});
    ASSERT_TRUE(done) << done.error().str();
  }
  /// A tree with a kernel, in `folder_`/tree.
  void makeTree() {
    sh("$2 tree; echo old >tree/boot/vmlinuz-5.10; head -c 3000000 /dev/zero | tr '\\0' b "
       ">tree/usr/bin/big; ln "
       "-s big tree/usr/bin/link; ln tree/etc/hostname tree/etc/same");
  }
  Result<void> import(const std::string& name, const std::string& out = "fs") {
    const auto work = folder_ / ("work-" + out);
    EXPECT_TRUE(io::makeDirs(work));
    const auto file = folder_ / name;
    auto done = importImage(
        {file, io::sha256File(file).value_or("")}, kind, work, folder_ / out,
        [](std::string_view) {}, architecture);
    std::filesystem::remove_all(work);
    return done;
  }
  std::string cat(const std::string& path, const std::string& image = "fs") {
    const auto files = ExtFiles::open(folder_ / image);
    if (!files) return files.error().str();
    const auto list = files->list();
    if (!list || !list->contains(path)) return "(missing)";
    return files->read(list->at(path).inode, 1u << 20).value_or("(unreadable)");
  }
  bool needsRoot() const { return ::geteuid() != 0; }

  test::TempFolder folder_;
  inventory::ImageKind kind = inventory::ImageKind::RootFs;
  Architecture architecture = Architecture::Amd64;
};

TEST_F(ImageImportTest, aTarBecomesTheSameImageEachTime) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  makeTree();
  sh("tar -C tree -cf tree.tar .");
  ASSERT_EQ(*importFormatOf(folder_ / "tree.tar"), ImportFormat::Tar);
  const auto first = import("tree.tar", "first");
  ASSERT_TRUE(first) << first.error().str();
  ASSERT_TRUE(import("tree.tar", "second"));
  const auto a = writePack(folder_ / "first", folder_ / "a", "same", 2),
             b = writePack(folder_ / "second", folder_ / "b", "same", 1);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(wire::digestOf(*a), wire::digestOf(*b));
  // Both imports may fall into one second; so what would tell them apart is looked at: the times
  // that the build itself makes.
  for (const char* path : {"/etc/hostname", "/vmlinuz", "/lost+found", "/"}) {
    const auto stat =
        io::runChecked({.program = "debugfs",
                        .args = {"-R", std::string("stat ") + path, (folder_ / "first").string()}});
    ASSERT_TRUE(stat);
    for (const char* time : {"ctime: 0x677485", "atime: 0x677485", "crtime: 0x677485"})
      EXPECT_THAT(*stat, HasSubstr(time)) << path;
  }
  EXPECT_EQ(cat("etc/hostname", "first"), "node\n");
  EXPECT_EQ(cat("vmlinuz", "first"), "boot/vmlinuz-6.1") << "the newest kernel";
  EXPECT_EQ(cat("initrd.img", "first"), "boot/initrd.img-6.1");
  const auto sound =
      io::runChecked({.program = "e2fsck", .args = {"-f", "-n", (folder_ / "first").string()}});
  EXPECT_TRUE(sound) << sound.error().str();
}

TEST_F(ImageImportTest, compressedTarsAndSquashfsGiveTheSameFiles) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  makeTree();
  sh("tar -C tree -czf tree.gz .; tar -C tree -cJf tree.xz .; tar -C tree -c . | zstd -q "
     ">tree.zst; mksquashfs tree tree.squashfs -quiet -no-progress >/dev/null");
  for (const char* name : {"tree.gz", "tree.xz", "tree.zst", "tree.squashfs"}) {
    const auto done = import(name);
    ASSERT_TRUE(done) << name << ": " << done.error().str();
    EXPECT_EQ(cat("etc/hostname"), "node\n") << name;
    EXPECT_EQ(cat("etc/same"), "node\n") << name;
  }
}

TEST_F(ImageImportTest, aFileThatWasCutShortIsCorrupt) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  makeTree();
  sh("head -c 3000000 /dev/urandom >tree/usr/bin/big; tar -C tree -cf t.tar .; gzip -k t.tar; xz "
     "-k t.tar; zstd -qk t.tar; mksquashfs tree t.squashfs -quiet -no-progress >/dev/null;"
     "for f in t.tar t.tar.gz t.tar.xz t.tar.zst t.squashfs; do truncate -s 1500000 $f; done");
  for (const char* name : {"t.tar", "t.tar.gz", "t.tar.xz", "t.tar.zst", "t.squashfs"}) {
    const auto done = import(name);
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code(), ErrorCode::Corrupt) << name << ": " << done.error().str();
  }
}

TEST_F(ImageImportTest, aTreeWithoutAKernelIsRefusedBeforeAnyNodeIsWiped) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  sh("mkdir -p tree/etc; echo node >tree/etc/hostname; tar -C tree -cf tree.tar .");
  const auto done = import("tree.tar");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(done.error().str(), HasSubstr("install a kernel"));
}

TEST_F(ImageImportTest, namesThatLeadOutAreRefused) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  makeTree();
  sh("mkdir outside; echo evil >file; tar -C tree -cf dots.tar .; tar -rf dots.tar --transform "
     "'s,file,../outside/dots,' -P file;"
     "ln -s \"$1/outside\" door; tar -cf link.tar door; rm door; mkdir door; echo evil "
     ">door/through; tar -rf link.tar door/through");
  for (const char* name : {"dots.tar", "link.tar"}) {
    const auto done = import(name);
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput) << done.error().str();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "outside"));
}

TEST_F(ImageImportTest, attributesThatTheFileSystemCannotHoldAreNotLost) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  makeTree();
  const auto add = [this](const std::string& attribute, int bytes) {
    sh("tar -C tree -cf a.tar .; python3 -c \"import tarfile; t=tarfile.open('a.tar','a'); "
       "i=tarfile.TarInfo('etc/kept'); i.pax_headers={'SCHILY.xattr." +
       attribute + "': 'a'*" + std::to_string(bytes) + "}; t.addfile(i); t.close()\"");
    const auto done = import("a.tar");
    return done ? std::string() : done.error().str();
  };
  EXPECT_EQ(add("user.some", 3000), "");
  EXPECT_EQ(add("com.apple.FinderInfo", 30), "") << "no system that reads it runs here";
  for (const char* attribute : {"user.some", "security.selinux"})
    EXPECT_THAT(add(attribute, 65000),
                AllOf(HasSubstr("\"etc/kept\""), HasSubstr(attribute), HasSubstr("65000 bytes")));
}

/// Two layers: the second changes one file, takes one away and empties a folder.
class OciTest : public ImageImportTest {
 protected:
  std::string blob(const std::string& file) {
    const auto digest = *io::sha256File(folder_ / file);
    std::filesystem::create_directories(folder_ / "oci/blobs/sha256");
    std::filesystem::copy_file(folder_ / file, folder_ / "oci/blobs/sha256" / digest,
                               std::filesystem::copy_options::overwrite_existing);
    return "sha256:" + digest;
  }
  std::string blobOfText(const std::string& text) {
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "blob", text));
    return blob("blob");
  }
  void makeArchive() {
    makeTree();
    sh("mkdir -p tree/var/old; echo gone >tree/var/old/gone; echo gone >tree/etc/gone; tar -C tree "
       "-czf layer1 .;"
       "mkdir -p top/etc top/var/old; echo second >top/etc/hostname; : >top/etc/.wh.gone; : "
       ">top/var/old/.wh..wh..opq; echo new >top/var/old/new; tar -C top -cf layer2 .");
    const nlohmann::json layers = {
        {{"mediaType", "application/vnd.oci.image.layer.v1.tar+gzip"}, {"digest", blob("layer1")}},
        {{"mediaType", "application/vnd.oci.image.layer.v1.tar"}, {"digest", blob("layer2")}}};
    const auto manifest = blobOfText(nlohmann::json{{"layers", layers}}.dump());
    const nlohmann::json other = {{"digest", "sha256:" + std::string(64, '0')},
                                  {"platform", {{"architecture", "arm64"}}}};
    const nlohmann::json ours = {{"digest", manifest}, {"platform", {{"architecture", "amd64"}}}};
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "oci/index.json",
                                    nlohmann::json{{"manifests", {other, ours}}}.dump()));
    ASSERT_TRUE(
        io::writeFileAtomic(folder_ / "oci/oci-layout", R"({"imageLayoutVersion":"1.0.0"})"));
    sh("tar -C oci -cf image.oci blobs index.json oci-layout");
  }
};

TEST_F(OciTest, laysItsLayersOverEachOther) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  makeArchive();
  ASSERT_EQ(*importFormatOf(folder_ / "image.oci"), ImportFormat::OciArchive);
  const auto done = import("image.oci");
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(cat("etc/hostname"), "second\n");
  EXPECT_EQ(cat("etc/gone"), "(missing)");
  EXPECT_EQ(cat("var/old/gone"), "(missing)");
  EXPECT_EQ(cat("var/old/new"), "new\n");
  EXPECT_EQ(cat("etc/.wh.gone"), "(missing)");
  EXPECT_EQ(cat("vmlinuz"), "boot/vmlinuz-6.1");
}

/// One archive for two processors: each gets its own, and who has none is told what is there.
TEST_F(OciTest, theManifestFollowsTheProcessor) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  const auto script = test::sourceFolder() / "tests/provision/images/make_arm64_tree.sh";
  makeArchive();
  sh("rm -rf tree");
  makeTree();
  sh(script.string() + " tree; echo arm >tree/etc/hostname; tar -C tree -cf layer3 .");
  const nlohmann::json layers = {
      {{"mediaType", "application/vnd.oci.image.layer.v1.tar"}, {"digest", blob("layer3")}}};
  auto index = nlohmann::json::parse(*io::readFile(folder_ / "oci/index.json"));
  index["manifests"][0]["digest"] = blobOfText(nlohmann::json{{"layers", layers}}.dump());
  index["manifests"][0]["platform"]["variant"] = "v8";
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "oci/index.json", index.dump()));
  sh("tar -C oci -cf both.oci blobs index.json oci-layout");
  const auto amd64 = import("both.oci");
  ASSERT_TRUE(amd64) << amd64.error().str();
  EXPECT_EQ(cat("etc/hostname"), "second\n");
  architecture = Architecture::Arm64;
  const auto arm64 = import("both.oci", "arm");
  ASSERT_TRUE(arm64) << arm64.error().str();
  EXPECT_EQ(cat("etc/hostname", "arm"), "arm\n");
  index["manifests"][0]["platform"]["architecture"] = "riscv64";
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "oci/index.json", index.dump()));
  sh("tar -C oci -cf none.oci blobs index.json oci-layout");
  const auto none = import("none.oci", "none");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().str(),
              HasSubstr("it holds no image for arm64, only for amd64, riscv64"));
}

TEST_F(OciTest, aDamagedBlobIsNamed) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  makeArchive();
  sh("for f in oci/blobs/sha256/*; do if gzip -t <$f 2>/dev/null; then printf x >>$f; fi; done; "
     "tar -C oci -cf image.oci blobs index.json oci-layout");
  const auto done = import("image.oci");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Corrupt);
  EXPECT_THAT(done.error().str(), HasSubstr("blob sha256:"));
}

TEST_F(OciTest, indexesThatAreNestedDeepAreRefusedWithWords) {
  for (const std::size_t levels : {1'000u, 10'000u, 1'000'000u}) {
    std::string objects;
    for (std::size_t i = 0; i < levels; ++i) objects += R"({"a":)";
    const auto arrays = std::string(levels, '[') + std::string(levels, ']');
    std::vector<std::string> indexes{arrays, objects + "1" + std::string(levels, '}'),
                                     R"({"manifests":)" + arrays + "}"};
    for (const auto& blob : {arrays, R"({"layers":)" + arrays + "}",
                             R"({"manifests":[{"digest":"x","platform":)" + arrays + "}]}"})
      indexes.push_back(nlohmann::json{
          {"manifests",
           {{{"digest", blobOfText(blob)}, {"platform", {{"architecture", "amd64"}}}}}}}
                            .dump());
    for (const auto& index : indexes) {
      ASSERT_TRUE(io::makeDirs(folder_ / "oci/blobs/sha256"));
      ASSERT_TRUE(io::writeFileAtomic(folder_ / "oci/index.json", index));
      ASSERT_TRUE(
          io::writeFileAtomic(folder_ / "oci/oci-layout", R"({"imageLayoutVersion":"1.0.0"})"));
      sh("tar -C oci -cf deep.oci blobs index.json oci-layout");
      const auto done = import("deep.oci");
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code(),
                index.size() > (4u << 20) ? ErrorCode::InvalidInput : ErrorCode::Corrupt)
          << done.error().str();
      EXPECT_THAT(done.error().str(), testing::AnyOf(HasSubstr("nested deeper than 64 levels"),
                                                     HasSubstr("larger than")));
      EXPECT_LT(done.error().str().size(), 500u);
    }
  }
}

/// Disks: an ext4 of 8 MiB, bare or in a partition.
class DiskImportTest : public ImageImportTest {
 protected:
  void SetUp() override {
    sh("$2 t; echo node >t/hostname; ln -s boot/vmlinuz-6.1 t/vmlinuz; ln -s boot/initrd.img-6.1 "
       "t/initrd.img; mke2fs -q -t ext4 -d t raw 8M; truncate -s 12M disk; "
       "printf 'label: gpt\\nstart=2048,size=16384\\n' | sfdisk -q disk;"
       "dd if=raw of=disk bs=512 seek=2048 conv=notrunc status=none;"
       // GRUB for BIOS: its name, and the sector at which the rest of it lies.
       "printf GRUB | dd of=disk bs=1 seek=384 conv=notrunc status=none;"
       "printf '\\042\\0\\0\\0\\0\\0\\0\\0' | dd of=disk bs=1 seek=92 conv=notrunc status=none;"
       "printf core | dd of=disk bs=512 seek=34 conv=notrunc status=none");
  }
};

TEST_F(DiskImportTest, everyFormatGivesTheFileSystem) {
  sh("qemu-img convert -f raw -O qcow2 disk disk.qcow2; qemu-img convert -f raw -O vmdk disk "
     "disk.vmdk; gzip -k raw; xz -k disk; zstd -qk disk");
  for (const char* name :
       {"raw", "disk", "disk.qcow2", "disk.vmdk", "raw.gz", "disk.xz", "disk.zst"}) {
    const auto done = import(name);
    ASSERT_TRUE(done) << name << ": " << done.error().str();
    EXPECT_EQ(cat("hostname"), "node\n") << name;
    EXPECT_EQ(std::filesystem::file_size(folder_ / "fs"), 8u << 20) << name;
  }
}

TEST_F(DiskImportTest, asAWholeItStaysWhatItIs) {
  kind = inventory::ImageKind::Disk;
  sh("qemu-img convert -f raw -O qcow2 disk disk.qcow2; tar -cf tree.tar t");
  for (const char* name : {"disk", "disk.qcow2"}) {
    const auto done = import(name);
    ASSERT_TRUE(done) << name << ": " << done.error().str();
    EXPECT_TRUE(*io::readFile(folder_ / "fs") == *io::readFile(folder_ / "disk")) << name;
  }
  EXPECT_THAT(import("raw").error().text(), HasSubstr("no partition table"));
  EXPECT_THAT(import("tree.tar").error().text(), HasSubstr("no disk"));
  sh("truncate -s 6M disk");
  EXPECT_EQ(import("disk").error().code(), ErrorCode::Corrupt);
  const auto packed =
      writePack(folder_ / "fs", folder_ / "pack", "vendor", 2, wire::PackKind::Disk);
  ASSERT_TRUE(packed);
  const auto read = wire::readIndex(canonicalJson(*packed));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->kind, wire::PackKind::Disk);
}

TEST_F(DiskImportTest, filesThatWereCutShortAreCorrupt) {
  sh("qemu-img convert -f raw -O qcow2 disk disk.qcow2; gzip -k disk; truncate -s 6M raw disk; "
     "truncate -s 1000 disk.gz; truncate -s 100 disk.qcow2");
  for (const char* name : {"raw", "disk", "disk.gz", "disk.qcow2"}) {
    const auto done = import(name);
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code(), ErrorCode::Corrupt) << name << ": " << done.error().str();
  }
}

TEST_F(DiskImportTest, neverReadsAnotherFileThatAnImageNames) {
  sh("echo secret >secret; qemu-img create -q -f qcow2 -b \"$1/raw\" -F raw evil.qcow2");
  const auto done = import("evil.qcow2");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(done.error().str(), HasSubstr("flatten it first"));
}

TEST_F(DiskImportTest, neverReadsAFileThatAnImageNamesAsItsData) {
  sh("qemu-img create -q -f qcow2 -o data_file=\"$1/raw\",data_file_raw=on data.qcow2 8M; qemu-img "
     "convert -f qcow2 -O raw data.qcow2 copy; cmp raw copy;"
     "qemu-img convert -f raw -O vmdk raw base.vmdk; qemu-img create -q -f vmdk -b "
     "\"$1/base.vmdk\" -F vmdk child.vmdk;"
     // A sparse VMDK without capacity is a description of extents at its sector 1.
     "{ printf 'KDMV\\001\\0\\0\\0\\003\\0\\0\\0'; head -c 8 /dev/zero; head -c 8 /dev/zero; "
     "printf '\\001\\0\\0\\0\\0\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0'; head -c 468 /dev/zero;"
     "printf '# Disk "
     "DescriptorFile\\nversion=1\\nCID=fffffffe\\nparentCID=ffffffff\\ncreateType="
     "\"monolithicFlat\"\\nRW 16384 FLAT \"raw\" 0\\n'; head -c 512 /dev/zero; } >named.vmdk; "
     "truncate -s 64K named.vmdk;"
     "qemu-img convert -f vmdk -O raw named.vmdk copy; cmp raw copy");
  for (const char* name : {"data.qcow2", "child.vmdk", "named.vmdk"}) {
    const auto done = import(name);
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput) << name << ": " << done.error().str();
    EXPECT_THAT(done.error().str(), HasSubstr("flatten it first")) << name;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "fs")) << name;
  }
}

TEST_F(DiskImportTest, aFileWithAnotherDigestIsRefused) {
  const auto done =
      importImage({folder_ / "raw", std::string(64, '0')}, inventory::ImageKind::RootFs,
                  folder_.path(), folder_ / "fs", [](std::string_view) {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Corrupt);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "fs"));
}

TEST_F(DiskImportTest, aFileSystemThatMustBeCheckedFirstIsRefusedBeforeAnyNodeIsWiped) {
  const struct {
    const char* change;
    const char* why;
  } cases[] = {{"feature needs_recovery", "journal"},
               {"set_super_value state 3", "faulty"},
               {"set_super_value state 0", "not unmounted"}};
  for (const auto& one : cases) {
    sh(std::string("cp raw unclean; cp disk disk2; debugfs -w -R '") + one.change +
       "' unclean 2>/dev/null; dd if=unclean of=disk2 bs=512 seek=2048 conv=notrunc status=none");
    for (const char* name : {"unclean", "disk2"}) {
      const auto done = import(name);
      ASSERT_FALSE(done) << name << ": " << one.change;
      EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
      EXPECT_THAT(done.error().str(), testing::AllOf(HasSubstr(one.why), HasSubstr("e2fsck -f")));
    }
    kind = inventory::ImageKind::Disk;
    EXPECT_TRUE(import("disk2")) << "the image of a whole disk is looked through on each node";
    kind = inventory::ImageKind::RootFs;
  }
}

TEST_F(DiskImportTest, aFileSystemThatWasMountedAndLetGoOfIsTaken) {
  sh("debugfs -w -R 'set_super_value mtime 20260102000000' raw 2>/dev/null; debugfs -w -R "
     "'set_super_value mnt_count 7' raw 2>/dev/null");
  const auto done = import("raw");
  EXPECT_TRUE(done) << done.error().str();
}

/// A disk for sectors of 4096 bytes: sfdisk makes such a table on a device that has them.
TEST_F(DiskImportTest, aTableForLargeSectorsIsReadAsOne) {
  if (needsRoot()) GTEST_SKIP() << "needs root";
  if (!io::runChecked(
          {.program = "sh",
           .args = {
               "-ec",
               "cd \"$1\"; rm -f t/hostname; \"$(dirname \"$2\")\"/make_disk.sh t d; truncate -s "
               "48M "
               "large; d=$(losetup --find --show --sector-size 4096 large); trap 'losetup -d $d' "
               "EXIT; printf 'label: gpt\\nstart=256,size=2048,type=U\\nstart=2304,size=8192\\n' | "
               "sfdisk -q --no-reread --no-tell-kernel $d; dd if=d.esp of=large bs=1M seek=1 "
               "conv=notrunc status=none; dd if=d.system of=large bs=1M seek=9 conv=notrunc "
               "status=none",
               "sh", folder_.path().string(),
               (test::sourceFolder() / "tests/provision/images/make_startable_tree.sh").string()}}))
    GTEST_SKIP() << "this machine lends no loop device with sectors of 4096 bytes";
  EXPECT_THAT(import("large").error().text(), HasSubstr("for sectors of 4096 bytes"));
  kind = inventory::ImageKind::Disk;
  const auto whole = import("large");
  ASSERT_TRUE(whole) << whole.error().str();
  EXPECT_EQ(writePack(folder_ / "fs", folder_ / "pack", "vendor", 2, wire::PackKind::Disk)
                ->tableSectorBytes(),
            4096);
  sh("truncate -s 16M large");
  EXPECT_EQ(import("large").error().code(), ErrorCode::Corrupt)
      << "its end is told in its own sectors";
}

TEST_F(DiskImportTest, aDiskWithoutAnythingIsRefused) {
  sh("truncate -s 4M empty");
  EXPECT_EQ(import("empty").error().code(), ErrorCode::InvalidInput);
}

}  // namespace
}  // namespace muster::provision
