// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/json_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

TEST(JsonView, takesNumbersAsStringsAndSurvivesEveryWrongShape) {
  const Json json = parseLenient(
      R"({"a":"25.687000","b":7,"c":null,"d":{"@odata.id":"/x"},"e":"/y","f":[{"@odata.id":"/1"},null,5,"/2"],"g":"many"})");
  EXPECT_EQ(numberAt(json, "a"), 25.687);
  EXPECT_EQ(textAt(json, "b"), "7");
  EXPECT_EQ(textAt(json, "c"), "");
  EXPECT_EQ(linkAt(json, "d"), "/x");
  EXPECT_EQ(linkAt(json, "e"), "/y");
  EXPECT_EQ(numberAt(json, "g"), std::nullopt);
  EXPECT_EQ(textAt(json, "a/b/c"), "");
  EXPECT_EQ(linksAt(json, "b"), std::vector<std::string>());
  EXPECT_THAT(linksAt(json, "f"), testing::ElementsAre("/1", "/2"));
  EXPECT_TRUE(parseLenient("<html>").is_null());
}

}  // namespace
}  // namespace muster::bmc
