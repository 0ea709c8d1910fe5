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

}  // namespace
}  // namespace muster::provision
