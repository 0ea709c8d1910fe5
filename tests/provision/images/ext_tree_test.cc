// SPDX-License-Identifier: Apache-2.0
// Each kind of difference between two trees is found: what the check after a new layout rests on.
#include "provision/images/ext_tree.h"

#include "base/io/files.h"
#include "provision/images/system_builder.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/xattr.h>

namespace muster::provision {
namespace {

using testing::HasSubstr;

class ExtTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::makeDirs(tree() / "etc/empty"));
    ASSERT_TRUE(io::writeFileAtomic(tree() / "etc/name", std::string(10'000, 'n')));
    ASSERT_TRUE(io::writeFileAtomic(tree() / "etc/other", std::string(10'000, 'o')));
    std::filesystem::create_hard_link(tree() / "etc/name", tree() / "etc/second");
    std::filesystem::create_symlink("name", tree() / "etc/short");
    std::filesystem::create_symlink(std::string(100, 'l'), tree() / "etc/long");
    settle();
  }
  std::filesystem::path tree() const { return folder_ / "tree"; }
  void settle() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tree()))
      setTime(entry.path(), 1'700'000'000);
  }
  static void setTime(const std::filesystem::path& path, time_t seconds) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  ExtHandle made(const std::string& name) {
    EXPECT_TRUE(makeExt4(tree(), folder_ / name));
    auto opened = openExt(folder_ / name, false);
    EXPECT_TRUE(opened) << opened.error().str();
    return std::move(*opened);
  }
  /// What is told of the tree before and after an edit. Times are the same again.
  std::string difference(const std::function<void()>& edit) {
    const auto before = made("before");
    edit();
    settle();
    return compared(before);
  }
  std::string compared(const ExtHandle& before) {
    const auto after = made("after");
    const auto a = ExtTree::read(before.get()), b = ExtTree::read(after.get());
    EXPECT_TRUE(a && b);
    const auto same = expectSameTree(*a, *b);
    return same ? "the same" : same.error().text();
  }
  test::TempFolder folder_;
};

TEST_F(ExtTreeTest, findsNoneInTheSameTree) {
  EXPECT_EQ(difference([] {}), "the same");
}

TEST_F(ExtTreeTest, findsNames) {
  EXPECT_THAT(difference([&] { std::filesystem::remove(tree() / "etc/other"); }),
              HasSubstr("/etc/other is missing"));
  EXPECT_THAT(difference([&] { std::filesystem::create_directory(tree() / "etc/new"); }),
              HasSubstr("/etc/new is too many"));
}

TEST_F(ExtTreeTest, findsContentOfTheSameSize) {
  EXPECT_THAT(
      difference([&] {
        ASSERT_TRUE(io::writeFileAtomic(tree() / "etc/other", std::string(9'999, 'o') + "x"));
      }),
      HasSubstr("/etc/other has other content"));
}

TEST_F(ExtTreeTest, findsWhereLinksLead) {
  EXPECT_THAT(difference([&] {
                std::filesystem::remove(tree() / "etc/short");
                std::filesystem::create_symlink("nama", tree() / "etc/short");
              }),
              HasSubstr("/etc/short has another inode"));
  EXPECT_THAT(difference([&] {
                std::filesystem::remove(tree() / "etc/long");
                std::filesystem::create_symlink(std::string(99, 'l') + "m", tree() / "etc/long");
              }),
              HasSubstr("/etc/long has other content"));
}

TEST_F(ExtTreeTest, findsHardLinks) {
  EXPECT_THAT(difference([&] {
                std::filesystem::remove(tree() / "etc/second");
                std::filesystem::copy(tree() / "etc/name", tree() / "etc/second");
              }),
              HasSubstr("/etc/name has other hard links"));
}

TEST_F(ExtTreeTest, findsModesAndTimes) {
  EXPECT_THAT(difference([&] { ::chmod((tree() / "etc/other").c_str(), 04755); }),
              HasSubstr("/etc/other has another inode"));
  const auto before = made("before");
  setTime(tree() / "etc/empty", 1'700'000'001);
  EXPECT_THAT(compared(before), HasSubstr("/etc/empty has another inode"));
}

TEST_F(ExtTreeTest, findsAttributesInTheInodeAndBesideIt) {
  const auto set = [&](std::size_t bytes, char with) {
    const std::string value(bytes, with);
    return ::lsetxattr((tree() / "etc/other").c_str(), "user.note", value.data(), value.size(), 0);
  };
  if (set(20, 'a') != 0) GTEST_SKIP() << "the file system of temporary files has no attributes";
  EXPECT_THAT(difference([&] { set(20, 'b'); }), HasSubstr("/etc/other has another inode"));
  set(900, 'a');
  EXPECT_THAT(difference([&] { set(900, 'b'); }), HasSubstr("/etc/other has other attributes"));
}

}  // namespace
}  // namespace muster::provision
