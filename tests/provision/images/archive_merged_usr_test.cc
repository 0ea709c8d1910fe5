// SPDX-License-Identifier: Apache-2.0
// Archives whose members go by links of the tree, and other members that are more than a file.
#include "provision/images/archive.h"

#include "import_folder.h"

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MergedUsr : public ImportFolder {
 protected:
  Result<void> extract(const std::string& name, bool layer = false) {
    EXPECT_TRUE(io::makeDirs(folder_ / "out"));
    return extractTree(folder_ / name, folder_ / "out", layer);
  }
  std::string at(const std::string& path) {
    return io::readFile(folder_ / "out" / path).value_or("(missing)");
  }
};

TEST_F(MergedUsr, aMemberBelowTheLinkLandsWhereItLeads) {
  for (const char* target : {"usr/lib", "/usr/lib", "./usr/../usr/lib/"}) {
    fs::remove_all(folder_ / "out");
    sh("rm -rf a b; mkdir -p a/usr/lib b/lib/modules; echo old >a/usr/lib/old; ln -s " +
       std::string(target) +
       " a/lib; echo new >b/lib/new; echo ko >b/lib/modules/x.ko; ln b/lib/new b/lib/same;"
       "tar -C a -cf t.tar usr lib; tar -C b -rf t.tar lib");
    const auto done = extract("t.tar");
    ASSERT_TRUE(done) << target << ": " << done.error().str();
    EXPECT_TRUE(fs::is_symlink(folder_ / "out/lib")) << target;
    EXPECT_EQ(at("usr/lib/old"), "old\n") << target;
    EXPECT_EQ(at("usr/lib/new"), "new\n") << target;
    EXPECT_EQ(at("usr/lib/same"), "new\n") << target;
    EXPECT_EQ(at("usr/lib/modules/x.ko"), "ko\n") << target;
  }
}

TEST_F(MergedUsr, aLayersMembersAndWhiteoutsGoByTheLinkToo) {
  sh("mkdir -p a/usr/lib/gone b/lib/gone; echo x >a/usr/lib/x; echo y >a/usr/lib/gone/y; ln -s "
     "/usr/lib a/lib; tar -C a -cf 1.tar .; : >b/lib/.wh.x; : >b/lib/gone/.wh..wh..opq; echo z "
     ">b/lib/z; tar -C b -cf 2.tar lib");
  ASSERT_TRUE(extract("1.tar", true));
  const auto done = extract("2.tar", true);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_TRUE(fs::is_symlink(folder_ / "out/lib"));
  EXPECT_EQ(at("usr/lib/x"), "(missing)");
  EXPECT_EQ(at("usr/lib/gone/y"), "(missing)");
  EXPECT_EQ(at("usr/lib/z"), "z\n");
}

TEST_F(MergedUsr, aFolderNeverTakesThePlaceOfALinkThatLeadsNowhere) {
  sh("mkdir -p b/lib; ln -s usr/lib lib; tar -cf t.tar lib; tar -C b -rf t.tar lib");
  const auto done = extract("t.tar");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(done.error().str(), HasSubstr("leads nowhere"));
}

TEST_F(MergedUsr, aFileNeverTakesThePlaceOfTheLink) {
  sh("mkdir -p usr/lib b; ln -s usr/lib lib; echo file >b/lib; tar -cf t.tar usr lib; tar -C b -rf "
     "t.tar lib");
  EXPECT_THAT(extract("t.tar").error().str(), HasSubstr("take the place of the link /lib"));
}

TEST_F(MergedUsr, linksInACircleAreRefused) {
  sh("mkdir -p b/lib; : >b/lib/x; ln -s other lib; ln -s lib other; tar -cf t.tar lib other; tar "
     "-C b -rf t.tar lib/x");
  const auto done = extract("t.tar");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
}

TEST_F(MergedUsr, aFileOfHolesIsRefusedBeforeItIsAnImage) {
  sh("$2 tree; truncate -s 1T tree/var/giant; tar -C tree -cSf giant.tar .");
  const auto done = import("giant.tar");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
  sh("truncate -s 30G tree/var/giant; tar -C tree -cSf holes.tar .");
  const auto holes = import("holes.tar");
  ASSERT_FALSE(holes);
  EXPECT_THAT(holes.error().str(), HasSubstr("holes"));
  // Larger than any image may be: refused before its SHA-256, which would take hours.
  sh("truncate -s 3T giant.raw");
  const auto raw = importImage({folder_ / "giant.raw", std::string(64, '0')}, kind,
                               folder_ / "work", folder_ / "fs", [](std::string_view) {});
  ASSERT_FALSE(raw);
  EXPECT_THAT(raw.error().str(), HasSubstr("an image may have 1024 GiB"));
}

TEST_F(MergedUsr, anOciArchiveOfMoreThanFilesIsRefused) {
  for (const char* index : {"mkfifo oci/index.json", "ln -s /etc/passwd oci/index.json",
                            "mknod oci/index.json c 1 5", "mkdir oci/index.json"}) {
    sh("rm -rf oci; mkdir -p oci/blobs/sha256; echo '{}' >oci/oci-layout; " + std::string(index) +
       "; tar -C oci -cf x.oci oci-layout index.json blobs");
    const auto done = import("x.oci");
    ASSERT_FALSE(done) << index;
  }
}

}  // namespace
}  // namespace muster::provision
