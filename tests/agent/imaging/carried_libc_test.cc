// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/carried_libc.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class CarriedLibcTest : public testing::Test {
 protected:
  void SetUp() override {
    copy(root_ / "usr/lib/muster/glibc/libc.so.6");
    put(root_ / "usr/lib/muster/glibc/ld-linux-x86-64.so.2", "loader");
    fs::create_symlink("glibc/ld-linux-x86-64.so.2", root_ / "usr/lib/muster/ld.so");
    put(root_ / "usr/lib64/ld-linux-x86-64.so.2", "loader of the system");
    fs::create_symlink("usr/lib64", root_ / "lib64");
  }
  static void copy(const fs::path& to) {
    ASSERT_TRUE(io::makeDirs(to.parent_path()));
    fs::copy_file("/lib/x86_64-linux-gnu/libc.so.6", to);
  }
  static void put(const fs::path& to, const std::string& content) {
    ASSERT_TRUE(io::makeDirs(to.parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(to, content));
  }
  /// The same library, of an older release: the names of its newest versions are older ones' again.
  void makeOlder(const fs::path& libc) {
    auto content = *io::readFile(libc, 64u << 20);
    for (int minor = 29; minor < 60; ++minor) {
      const auto name = "GLIBC_2." + std::to_string(minor);
      for (auto at = content.find(name); at != std::string::npos; at = content.find(name, at + 1))
        content.replace(at, name.size(), "GLIBC_2.28");
    }
    put(libc, content);
  }
  std::string loader() { return fs::read_symlink(root_ / "usr/lib/muster/ld.so"); }
  bool carried() { return fs::exists(root_ / "usr/lib/muster/glibc/libc.so.6"); }

  test::TempFolder folder_;
  fs::path root_ = folder_ / "root";
};

TEST_F(CarriedLibcTest, anOlderSystemGetsTheCarriedOne) {
  const auto libc = root_ / "usr/lib/x86_64-linux-gnu/libc.so.6";
  copy(libc);
  makeOlder(libc);
  ASSERT_TRUE(chooseLibc(root_));
  EXPECT_EQ(loader(), "glibc/ld-linux-x86-64.so.2");
  EXPECT_TRUE(carried());
}

TEST_F(CarriedLibcTest, aSystemThatIsNotOlderKeepsItsOwn) {
  copy(root_ / "usr/lib64/libc-2.99.so");
  fs::create_symlink("/usr/lib64/libc-2.99.so", root_ / "usr/lib64/libc.so.6");
  ASSERT_TRUE(chooseLibc(root_));
  EXPECT_EQ(loader(), "/lib64/ld-linux-x86-64.so.2");
  EXPECT_FALSE(carried()) << "it would be found before the system's, which fits the loader";
}

TEST_F(CarriedLibcTest, aSystemWithoutOneGetsTheCarriedOne) {
  ASSERT_TRUE(chooseLibc(root_));
  EXPECT_EQ(loader(), "glibc/ld-linux-x86-64.so.2");
  put(root_ / "lib/libc.so.6", "no library");
  ASSERT_TRUE(chooseLibc(root_));
  EXPECT_TRUE(carried());
}

TEST_F(CarriedLibcTest, aLoaderThatLeadsNowhereIsNotUsed) {
  copy(root_ / "usr/lib64/libc.so.6");
  fs::remove(root_ / "usr/lib64/ld-linux-x86-64.so.2");
  fs::create_symlink("/nowhere", root_ / "usr/lib64/ld-linux-x86-64.so.2");
  ASSERT_TRUE(chooseLibc(root_));
  EXPECT_EQ(loader(), "glibc/ld-linux-x86-64.so.2");
  fs::remove(root_ / "usr/lib64/ld-linux-x86-64.so.2");
  fs::create_symlink("ld-linux-x86-64.so.2", root_ / "usr/lib64/ld-linux-x86-64.so.2");
  ASSERT_TRUE(chooseLibc(root_)) << "a circle";
  EXPECT_TRUE(carried());
}

TEST_F(CarriedLibcTest, withoutACopyNothingIsChosen) {
  fs::remove_all(root_ / "usr/lib/muster");
  ASSERT_TRUE(io::makeDirs(root_ / "usr/lib/muster"));
  ASSERT_TRUE(chooseLibc(root_));
  EXPECT_FALSE(fs::exists(fs::symlink_status(root_ / "usr/lib/muster/ld.so")));
}

}  // namespace
}  // namespace muster::agent
