// SPDX-License-Identifier: Apache-2.0
#include "wire/erase_disks.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::wire {
namespace {

using ::testing::ElementsAre;

TEST(EraseParams, areTakenStrictly) {
  const auto good =
      parseEraseParams(R"({"node_serial":"X","wipe_allowed":true,"disk_serials":["A","B"]})");
  ASSERT_TRUE(good) << good.error().str();
  EXPECT_TRUE(good->wipe_allowed);
  EXPECT_THAT(good->disk_serials, ElementsAre("A", "B"));
  EXPECT_FALSE(parseEraseParams(R"({"node_serial":"X"})")->wipe_allowed)
      << "what is not said is not allowed";
  for (const char* bad :
       {"", "[]", "{}", R"({"node_serial":7})", R"({"node_serial":"X","wipe_allowed":"yes"})",
        R"({"node_serial":"X","disk_serials":"A"})", R"({"node_serial":"X","disk_serials":[7]})"})
    EXPECT_FALSE(parseEraseParams(bad)) << bad;
  nlohmann::json many{{"node_serial", "X"},
                      {"disk_serials", std::vector<std::string>(kMaxErasedDisks + 1, "A")}};
  EXPECT_FALSE(parseEraseParams(many.dump()));
}

TEST(EraseParams, haveTheBytesThatAgentsOfBeforeRead) {
  EXPECT_EQ(toJson({"X", {"A", "B"}, true}),
            R"({"disk_serials":["A","B"],"node_serial":"X","wipe_allowed":true})");
  EXPECT_EQ(toJson({"X", {}, false}),
            R"({"disk_serials":[],"node_serial":"X","wipe_allowed":false})");
}

}  // namespace
}  // namespace muster::wire
