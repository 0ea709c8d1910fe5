// SPDX-License-Identifier: Apache-2.0
// Compares text with a file under tests/; UPDATE_GOLDEN=1 writes it instead.
#pragma once

#include "base/io/files.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace muster::test {

inline void expectGolden(const std::string& file_below_tests, const std::string& text) {
  const auto path = test::sourceFolder() / "tests" / file_below_tests;
  if (std::getenv("UPDATE_GOLDEN")) {
    ASSERT_TRUE(io::makeDirs(path.parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(path, text));
    return;
  }
  const auto wanted = io::readFile(path);
  ASSERT_TRUE(wanted) << wanted.error().str() << "; make it with UPDATE_GOLDEN=1";
  EXPECT_EQ(text, *wanted) << path << " differs; if that is right, run with UPDATE_GOLDEN=1";
}

}  // namespace muster::test
