// SPDX-License-Identifier: Apache-2.0
// Files made by public tools, and what an import says of them.
#pragma once

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/image_import.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace muster::provision {

class ImportFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "unpacking a root file system needs root";
  }
  /// Words of the script: $1 is the folder, in which it runs; $2 makes a tree that starts, $3 makes
  /// of it one for arm64.
  std::string sh(const std::string& script) {
    const auto tests = test::sourceFolder() / "tests/provision/images";
    const auto maker = tests / "make_startable_tree.sh", arm64 = tests / "make_arm64_tree.sh";
    const auto done =
        io::runChecked({.program = "sh",
                        .args = {"-ec", "cd \"$1\"; " + script, "sh", folder_.path().string(),
                                 maker.string(), arm64.string()}});
    EXPECT_TRUE(done) << done.error().str();
    return done.value_or("");
  }
  Result<void> import(const std::string& name, const std::string& out = "fs") {
    const auto work = folder_ / "work";
    EXPECT_TRUE(io::makeDirs(work));
    const auto file = folder_ / name;
    auto done = importImage(
        {file, io::sha256File(file).value_or("")}, kind, work, folder_ / out,
        [](std::string_view) {}, architecture);
    std::filesystem::remove_all(work);
    return done;
  }
  /// What an import says of the tree `tree`, as a tar; empty: it takes it.
  std::string refusalOfTree() {
    sh("tar -C tree -cf tree.tar .");
    const auto done = import("tree.tar");
    return done ? std::string() : done.error().str();
  }

  test::TempFolder folder_;
  inventory::ImageKind kind = inventory::ImageKind::RootFs;
  Architecture architecture = Architecture::Amd64;
};

}  // namespace muster::provision
