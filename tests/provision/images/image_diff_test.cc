// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_diff.h"

#include "base/io/process.h"
#include "inventory/model/images.h"
#include "kept_images.h"

#include <sys/stat.h>

namespace muster::provision {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ImageDiffTest : public KeptImagesTest {
 protected:
  std::filesystem::path tree(const std::string& name, const std::string& version,
                             const std::string& kernel) {
    const auto tree = folder_ / name;
    EXPECT_TRUE(io::makeDirs(tree / "etc"));
    EXPECT_TRUE(io::makeDirs(tree / "var/lib/dpkg"));
    EXPECT_TRUE(io::makeDirs(tree / "usr/lib/modules" / kernel));
    EXPECT_TRUE(io::writeFileAtomic(tree / "etc/hostname", "node\n"));
    EXPECT_TRUE(io::writeFileAtomic(tree / "etc/version", version + "\n"));
    EXPECT_TRUE(io::writeFileAtomic(
        tree / "var/lib/dpkg/status",
        "Package: munge\nStatus: install ok installed\nVersion: " + version +
            "\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n"));
    return tree;
  }
  PackedImage buildTree(const inventory::Image& image, const std::filesystem::path& tree) {
    return buildBy(image,
                   [tree](const std::filesystem::path& file) { return makeExt4(tree, file); });
  }
  Result<ImageDiff> diff(const inventory::Image& a, const inventory::Image& b) {
    EXPECT_TRUE(io::makeDirs(folder_ / "work"));
    return diffImages(entryOf(a), entryOf(b), folder_ / "work");
  }
};

TEST_F(ImageDiffTest, namesFilesPackagesAndKernels) {
  const auto old_tree = tree("old", "1.0", "6.1"), new_tree = tree("new", "2.0", "6.12");
  ASSERT_TRUE(io::writeFileAtomic(old_tree / "etc/removed", "x"));
  ASSERT_TRUE(io::writeFileAtomic(new_tree / "etc/added", "x"));
  std::filesystem::create_symlink("a", old_tree / "etc/link");
  std::filesystem::create_symlink("b", new_tree / "etc/link");
  const auto a = declared("a"), b = declared("b");
  buildTree(a, old_tree);
  buildTree(b, new_tree);
  const auto found = diff(a, b);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_TRUE(found->looked_inside);
  EXPECT_THAT(found->added, ElementsAre("etc/added", "usr/lib/modules/6.12"));
  EXPECT_THAT(found->removed, ElementsAre("etc/removed", "usr/lib/modules/6.1"));
  EXPECT_THAT(found->changed, ElementsAre("etc/link", "etc/version", "var/lib/dpkg/status"));
  ASSERT_EQ(found->packages.size(), 1u);
  EXPECT_EQ(found->packages[0].name + found->packages[0].from + found->packages[0].to,
            "munge1.02.0");
  EXPECT_THAT(found->kernels_from, ElementsAre("6.1"));
  EXPECT_THAT(found->kernels_to, ElementsAre("6.12"));
  EXPECT_GT(found->changed_chunks, 0u);
  EXPECT_GT(found->fetch_bytes, 0u);
}

TEST_F(ImageDiffTest, anImageDoesNotDifferFromItself) {
  const auto a = declared("a");
  buildTree(a, tree("tree", "1.0", "6.1"));
  const auto found = diff(a, a);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(found->changed_chunks, 0u);
  EXPECT_THAT(found->changed, IsEmpty());
  EXPECT_THAT(found->packages, IsEmpty());
}

TEST_F(ImageDiffTest, comparesChunksWhereThereIsNoFileSystem) {
  const auto a = declared("a"), b = declared("b");
  build(a, std::string(kMib, 'a') + std::string(kMib, 'b'));
  build(b, std::string(kMib, 'a') + std::string(kMib, 'c') + std::string(kMib, 'd'));
  const auto found = diff(a, b);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_FALSE(found->looked_inside);
  EXPECT_EQ(found->chunks, 3u);
  EXPECT_EQ(found->changed_chunks, 2u);
}

TEST_F(ImageDiffTest, aDamagedImageIsNamed) {
  const auto a = declared("a"), b = declared("b");
  const auto built = buildTree(a, tree("one", "1.0", "6.1"));
  buildTree(b, tree("two", "2.0", "6.1"));
  flip(built.pack, 100);
  const auto found = diff(a, b);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::Corrupt);
}

/// Whoever opens a FIFO waits for the other end.
TEST_F(ImageDiffTest, aFifoInPlaceOfAPackIsNamed) {
  const auto a = declared("a"), b = declared("b");
  const auto built = buildTree(a, tree("one", "1.0", "6.1"));
  buildTree(b, tree("two", "2.0", "6.1"));
  std::filesystem::remove(built.pack);
  ASSERT_EQ(::mkfifo(built.pack.c_str(), 0600), 0);
  const auto found = diff(a, b);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::Corrupt);
  EXPECT_NE(found.error().str().find("is no regular file"), std::string::npos);
}

}  // namespace
}  // namespace muster::provision
