// SPDX-License-Identifier: Apache-2.0
#include "provision/images/recipes.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::provision {
namespace {

TEST(Recipes, areTheFilesOfTheSourceTree) {
  ASSERT_FALSE(recipeFiles().empty());
  for (const auto& file : recipeFiles()) {
    const auto source =
        io::readFile(test::sourceFolder() / "provision/images/recipes" / std::string(file.name));
    ASSERT_TRUE(source) << file.name;
    EXPECT_EQ(file.content, *source) << file.name;
  }
}

TEST(Recipes, listsHaveNoComments) {
  EXPECT_THAT(recipeLines("node/packages"), testing::Contains("systemd"));
  EXPECT_THAT(recipeLines("ramos/packages"), testing::Each(testing::Not(testing::StartsWith("#"))));
}

TEST(Recipes, eachKindHasItsOwnDigest) { EXPECT_NE(recipeDigest("node"), recipeDigest("ramos")); }

TEST(Recipes, scriptsAreExecutableAndParse) {
  test::TempFolder folder;
  ASSERT_TRUE(writeRecipes(folder.path()));
  int scripts = 0;
  for (const auto& file : recipeFiles()) {
    if (!file.content.starts_with("#!/bin/sh")) continue;
    ++scripts;
    const auto path = (folder.path() / std::string(file.name)).string();
    EXPECT_TRUE(io::runChecked({.program = "test", .args = {"-x", path}})) << file.name;
    const auto parsed = io::runChecked({.program = "sh", .args = {"-n", path}});
    EXPECT_TRUE(parsed) << parsed.error().str();
  }
  EXPECT_GE(scripts, 5);
}

/// What kernel-install calls after a kernel came or went.
TEST(Recipes, theLinksFollowTheNewestKernelThatHasAnInitrd) {
  test::TempFolder folder;
  const auto plugin =
      test::sourceFolder() / "provision/images/recipes/node-dnf/link-kernel.install";
  const auto run = [&](const std::string& script) {
    const auto done =
        io::runChecked({.program = "sh",
                        .args = {"-ec", "cd \"$1\"; " + script + "; readlink vmlinuz initrd.img",
                                 "sh", folder.path().string(), plugin.string()},
                        .env = {{"ROOT", folder.path().string()}}});
    return done ? *done : done.error().str();
  };
  EXPECT_EQ(run("mkdir boot; for k in 5.14.0-9 5.14.0-70 0-rescue-1; do echo k >boot/vmlinuz-$k; "
                "echo i >boot/initramfs-$k.img; done; ln -s boot/vmlinuz-5.14.0-9 vmlinuz; ln -s "
                "boot/initramfs-5.14.0-9.img initrd.img; \"$2\" add 5.14.0-70"),
            "boot/vmlinuz-5.14.0-70\nboot/initramfs-5.14.0-70.img\n");
  EXPECT_EQ(run("echo k >boot/vmlinuz-5.14.0-503; \"$2\" add 5.14.0-503"),
            "boot/vmlinuz-5.14.0-70\nboot/initramfs-5.14.0-70.img\n")
      << "it has no initrd yet";
  EXPECT_EQ(run("\"$2\" remove 5.14.0-70"), "boot/vmlinuz-5.14.0-9\nboot/initramfs-5.14.0-9.img\n");
}

}  // namespace
}  // namespace muster::provision
