// SPDX-License-Identifier: Apache-2.0
// Live images: squashfs in, kernel and modules out again; a tree that no machine could start is
// refused.
#include "provision/images/live_image.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/images.h"
#include "provision/images/image_import.h"
#include "provision/images/image_store.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "tests/fakes/fake_system_builder.h"
#include "tests/paths.h"
#include "tests/provision/images/quiet.h"
#include "tests/run_async.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

namespace muster::provision {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LiveImageTest : public ::testing::Test {
 protected:
  /// A tree with a kernel of this version: modules that are needed at start, one that is not, one
  /// that another needs.
  void kernel(const std::string& version, const char* image_folder = "boot") {
    const std::string modules = "usr/lib/modules/" + version;
    for (const char* file : {"kernel/fs/squashfs/squashfs.ko", "kernel/drivers/block/loop.ko",
                             "kernel/fs/nfs/nfs.ko", "updates/dkms/needed.ko"})
      put(modules + "/" + file, "no real module");
    put(modules + "/modules.dep",
        "kernel/fs/squashfs/squashfs.ko: "
        "updates/dkms/needed.ko\nkernel/drivers/block/loop.ko:\nkernel/fs/nfs/nfs.ko:\nupdates/"
        "dkms/needed.ko:\n");
    put(std::string(image_folder) == "boot" ? "boot/vmlinuz-" + version : modules + "/vmlinuz",
        "kernel " + version);
  }
  void put(const std::string& name, std::string_view text) {
    ASSERT_TRUE(io::makeDirs((tree_ / name).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(tree_ / name, text));
  }
  std::string run(const std::string& script) {
    auto said =
        io::runChecked({.program = "sh", .args = {"-ec", script, "sh", folder_.path().string()}});
    EXPECT_TRUE(said) << said.error().str();
    return said.value_or("");
  }
  static Async<io::ServerResponse> answerOf(Task<io::ServerResponse> work) {
    co_return co_await std::move(work);
  }
  Result<void> squash(const std::string& file) { return makeSquashfs(tree_, folder_ / file, 0); }

  test::TempFolder folder_;
  std::filesystem::path tree_ = folder_ / "tree";
};

TEST_F(LiveImageTest, theSameTreeIsTheSameFile) {
  kernel("6.1.0-9");
  put("boot/initrd.img-6.1.0-9", std::string(1u << 20, 'i'));
  ASSERT_TRUE(squash("a"));
  run("find \"$1/tree\" -exec touch {} +");
  ASSERT_TRUE(squash("b"));
  EXPECT_EQ(*io::sha256File(folder_ / "a"), *io::sha256File(folder_ / "b"));
  EXPECT_THAT(run("unsquashfs -l \"$1/a\""),
              ::testing::AllOf(HasSubstr("boot/vmlinuz-6.1.0-9"), Not(HasSubstr("initrd.img"))));
}

TEST_F(LiveImageTest, theNewestWholeKernelComesOutOfIt) {
  kernel("6.1.0-9");
  kernel("6.1.0-28", "modules");
  put("usr/lib/modules/6.1.0-99/kernel/x.ko", "a kernel without an image");
  ASSERT_TRUE(squash("image"));
  ASSERT_TRUE(io::makeDirs(folder_ / "out"));
  const auto made = makeLiveBoot(folder_ / "image", folder_ / "work", folder_ / "out");
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(*io::readFile(folder_ / "out/vmlinuz"), "kernel 6.1.0-28");
  const auto listed = run("zstd -dc \"$1/out/modules.img\" | cpio -t --quiet");
  for (const char* file : {"kernel/fs/squashfs/squashfs.ko", "kernel/drivers/block/loop.ko",
                           "updates/dkms/needed.ko", "modules.dep.bin"})
    EXPECT_THAT(listed, HasSubstr(std::string("usr/lib/modules/6.1.0-28/") + file));
  EXPECT_THAT(listed, Not(HasSubstr("nfs.ko")))
      << "the whole image has it; the start does not need it";
}

/// What a link or a list in somebody's image names is looked for in the image, and never here.
TEST_F(LiveImageTest, noFileOfThisMachineIsTaken) {
  ASSERT_TRUE(io::makeDirs(folder_ / "host/modules/6.1.0-9"));
  for (const char* file : {"vmlinuz-6.1.0-9", "modules/6.1.0-9/modules.dep"})
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "host" / file, "of this machine"));
  const auto host = (folder_ / "host").string();
  run("mkdir -p \"$1/tree/usr/lib\"; ln -s " + host + " \"$1/tree/boot\"; ln -s " + host +
      "/modules \"$1/tree/usr/lib/modules\"");
  EXPECT_FALSE(squash("image")) << "boot and modules are links";
  run("rm -r \"$1/tree\"");
  kernel("6.1.0-9");
  run("rm \"$1/tree/boot/vmlinuz-6.1.0-9\"; ln -s " + host +
      "/vmlinuz-6.1.0-9 \"$1/tree/boot/vmlinuz-6.1.0-9\"");
  EXPECT_FALSE(squash("image")) << "the kernel is a link";
}

TEST_F(LiveImageTest, noFileOfThisMachineIsMoved) {
  kernel("6.1.0-9");
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "precious", "of this machine"));
  std::string up;
  for (int i = 0; i < 30; ++i) up += "../";
  const auto list = folder_ / "tree/usr/lib/modules/6.1.0-9/modules.dep";
  const auto before = *io::readFile(list);
  const auto named = up + folder_.path().relative_path().string() + "/precious";
  ASSERT_TRUE(
      io::writeFileAtomic(list, "kernel/fs/squashfs/squashfs.ko: " + named + "\n" + before));
  ASSERT_TRUE(squash("image"));
  ASSERT_TRUE(io::makeDirs(folder_ / "out"));
  const auto made = makeLiveBoot(folder_ / "image", folder_ / "work", folder_ / "out");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().str(), HasSubstr("names files outside its folder"));
  EXPECT_EQ(io::readFile(folder_ / "precious").value_or("moved"), "of this machine");
}

TEST_F(LiveImageTest, aTreeWithoutAKernelIsRefused) {
  put("usr/bin/sh", "");
  const auto made = squash("image");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(made.error().text(), HasSubstr("install a kernel into it"));
  put("boot/vmlinuz-6.1.0-9", "a kernel without modules");
  EXPECT_FALSE(squash("image"));
}

TEST_F(LiveImageTest, whatIsNoSquashfsIsCorrupt) {
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "image", "hsqs, and nothing else"));
  const auto made = makeLiveBoot(folder_ / "image", folder_ / "work", folder_.path());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::Corrupt);
}

TEST_F(LiveImageTest, theStoreKeepsWhatStartsItAndServesIt) {
  kernel("6.1.0-9");
  ASSERT_TRUE(squash("image"));
  auto builder = std::make_unique<test::FakeSystemBuilder>();
  builder->image_bytes = *io::readFile(folder_ / "image");
  auto store = openImageStore(
      {folder_ / "cache", folder_ / "no-agent", *io::SigningKey::generate()}, std::move(builder));
  const inventory::Image image{
      "compute", inventory::ImageBuild{"bookworm", {}, ""}, {}, inventory::ImageKind::Live};
  const auto built = store->build(image, kQuiet);
  ASSERT_TRUE(built) << built.error().str();
  EXPECT_TRUE(built->live);
  EXPECT_EQ(*io::readFile(built->kernel), "kernel 6.1.0-9");
  std::filesystem::remove_all(
      built->kernel.parent_path());  // as after an import of another controller's image, or with
                                     // another recipe
  EXPECT_TRUE((*store->find(image))->kernel.empty());
  EXPECT_FALSE(store->build(image, kQuiet)->kernel.empty()) << "taken out of it again";
  const inventory::Image on_disk{"compute", inventory::ImageBuild{"bookworm", {}, ""}, {}};
  EXPECT_NE(imageKey(image), imageKey(on_disk));

  const auto routes = store->routes();
  for (const auto& [file, status] : {std::pair("vmlinuz", 200), std::pair("modules.img", 200),
                                     std::pair("index.json", 200), std::pair("initrd.img", 404)}) {
    io::ServerRequest request;
    request.method = "GET";
    request.target = fmt::format("/images/{}/{}", built->digest, file);
    EXPECT_EQ(test::runAsync(answerOf(routes[0].handle(std::move(request))))->status, status)
        << file;
  }
}

TEST_F(LiveImageTest, aDiskIsNoTreeToImport) {
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "disk.raw", std::string(1u << 20, '\0')));
  const inventory::ImageImport import{folder_ / "disk.raw", *io::sha256File(folder_ / "disk.raw")};
  const auto imported =
      importImage(import, inventory::ImageKind::Live, folder_ / "work", folder_ / "out", kQuiet);
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().text(), HasSubstr("a live image is made of a tree of files"));
}

TEST_F(LiveImageTest, aTarBecomesOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "unpacking a root file system needs root";
  run(fmt::format(
      "{} \"$1/tree\"",
      (test::sourceFolder() / "tests/provision/images/make_startable_tree.sh").string()));
  run("tar -C \"$1/tree\" -czf \"$1/t.tgz\" .");
  const inventory::ImageImport import{folder_ / "t.tgz", *io::sha256File(folder_ / "t.tgz")};
  ASSERT_TRUE(io::makeDirs(folder_ / "work"));
  const auto imported =
      importImage(import, inventory::ImageKind::Live, folder_ / "work", folder_ / "out", kQuiet);
  ASSERT_TRUE(imported) << imported.error().str();
  EXPECT_THAT(run("unsquashfs -l \"$1/out\""), HasSubstr("boot/vmlinuz-6.1"));
}

}  // namespace
}  // namespace muster::provision
