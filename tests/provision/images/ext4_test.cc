// SPDX-License-Identifier: Apache-2.0
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/system_builder.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

namespace muster::provision {
namespace {

std::filesystem::path makeTree(const test::TempFolder& folder) {
  const auto tree = folder / "tree";
  EXPECT_TRUE(io::makeDirs(tree / "etc"));
  EXPECT_TRUE(io::writeFileAtomic(tree / "etc/hostname", "node\n"));
  EXPECT_TRUE(io::writeFileAtomic(tree / "big", std::string(3u << 20, 'b')));
  std::filesystem::create_symlink("etc/hostname", tree / "link");
  return tree;
}

TEST(Ext4, holdsTheFolderAndIsSound) {
  test::TempFolder folder;
  const auto made = makeExt4(makeTree(folder), folder / "fs");
  ASSERT_TRUE(made) << made.error().str();
  const auto checked =
      io::runChecked({.program = "e2fsck", .args = {"-f", "-n", (folder / "fs").string()}});
  EXPECT_TRUE(checked) << checked.error().str();
  const auto content = io::runChecked(
      {.program = "debugfs", .args = {"-R", "cat /etc/hostname", (folder / "fs").string()}});
  ASSERT_TRUE(content) << content.error().str();
  EXPECT_EQ(*content, "node\n");
}

}  // namespace
}  // namespace muster::provision
