// SPDX-License-Identifier: Apache-2.0
#include "app/validation/active_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::app {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const NodeName kA("gpu001"), kB("gpu002"), kC("gpu003"), kD("gpu004");
constexpr WallTime kNow{500h};

TEST(ActiveChecks, whoWasNotCheckedForLongestIsFirst) {
  const inventory::ActiveChecks rule{"quick", 24, 2, 100};
  EXPECT_THAT(dueForCheck(rule, {kA, kB, kC}, {{kA, kNow - 30h}, {kB, kNow - 40h}}, kNow),
              ElementsAre(kC, kB));
  EXPECT_THAT(dueForCheck(rule, {kA, kB}, {{kA, kNow - 23h}, {kB, kNow - 1h}}, kNow), IsEmpty());
  EXPECT_THAT(dueForCheck(rule, {kA}, {{kA, kNow + 1h}}, kNow), ElementsAre(kA))
      << "the clock was set back";
}

TEST(ActiveChecks, noMoreThanTheBudgetAtOnce) {
  const std::vector<NodeName> idle{kA, kB, kC, kD};
  EXPECT_THAT(dueForCheck({"quick", 24, 10, 50}, idle, {}, kNow), ElementsAre(kA, kB));
  EXPECT_THAT(dueForCheck({"quick", 24, 1, 100}, idle, {}, kNow), ElementsAre(kA));
  EXPECT_THAT(dueForCheck({"quick", 24, 10, 1}, idle, {}, kNow), ElementsAre(kA)) << "always one";
  EXPECT_THAT(dueForCheck({"quick", 24, 10, 50}, {}, {}, kNow), IsEmpty());
}

TEST(ActiveChecks, aRecordIsReadAsItWasWritten) {
  const auto read = parseActiveCheck(toJson(ActiveCheckRecord{kNow, "quick", {"host.gemm"}}));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->at, kNow);
  EXPECT_EQ(read->gate, "quick");
  EXPECT_THAT(read->failed, ElementsAre("host.gemm"));
  for (const char* wrong : {"", "[]", "{}", R"({"at": "soon", "gate": "quick", "failed": []})",
                            R"({"at": "2026-01-01T00:00:00.000Z", "gate": 1, "failed": []})"})
    EXPECT_FALSE(parseActiveCheck(wrong)) << wrong;
}

}  // namespace
}  // namespace muster::app
