// SPDX-License-Identifier: Apache-2.0
#include "base/ids.h"
#include "base/diagnostic.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Mac, everyUsualSpelling) {
  for (const auto* text :
       {"52:54:00:Ab:0c:01", "52-54-00-ab-0c-01", "5254.00ab.0c01", "525400AB0C01"}) {
    const auto mac = Mac::parse(text);
    ASSERT_TRUE(mac) << text;
    EXPECT_EQ(mac->str(), "52:54:00:ab:0c:01");
  }
}

TEST(Mac, refusesTheRest) {
  for (const auto* text : {"", "52:54:00:ab:0c", "52:54:00:ab:0c:01:02", "52:54:00:ab:0c:0g",
                           "52:54-00:ab:0c:01", "5254:00ab:0c01", "525400ab0c0",
                           ":2:54:00:ab:0c:01", "52:54:00:ab:0c:0:", " 2:54:00:ab:0c:01",
                           "5254.00ab.0c.1", "............", "52:54:00:ab:0c:01 "}) {
    EXPECT_FALSE(Mac::parse(text)) << text;
  }
}

TEST(Diagnostics, sortedAndReadable) {
  Diagnostics all;
  all.warning({"b.yaml", 2, 1}, "odd");
  EXPECT_FALSE(all.hasErrors());
  all.error({"a.yaml", 10, 3}, "unknown key \"gpu\"", "did you mean \"gpus\"?");
  all.error({"a.yaml", 9, 3}, "first");
  all.sort();
  EXPECT_TRUE(all.hasErrors());
  EXPECT_EQ(all.all()[0].text, "first");
  EXPECT_EQ(all.all()[1].str(), "a.yaml:10:3: error: unknown key \"gpu\" (did you mean \"gpus\"?)");
}

TEST(ErrorText, outermostContextFirst) {
  const auto error = Error(ErrorCode::Timeout, "no answer")
                         .within("BMC 10.0.0.1")
                         .within("gpu001")
                         .at({"x.yaml", 3, 1});
  EXPECT_EQ(error.str(), "x.yaml:3:1: gpu001: BMC 10.0.0.1: no answer");
  EXPECT_TRUE(error.canRetry());
  EXPECT_FALSE(Error(ErrorCode::Denied, "x").canRetry());
}

}  // namespace
}  // namespace muster
