// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/json_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

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

// An answer may be as large as its bound: each message used to be looked for in all before it.
TEST(JsonView, readsNoMoreMessagesThanItShows) {
  constexpr int kMessages = 100'000;
  Json list = Json::array();
  for (int i = 0; i < kMessages; ++i)
    list.push_back({{"Message", fmt::format("{:0100} and a few words of its own", i)}});
  const Json body = {{"error", {{"@Message.ExtendedInfo", std::move(list)}}}};
  const auto begun = std::chrono::steady_clock::now();
  const auto words = serviceMessage(body);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_TRUE(words.ends_with("…"));
  EXPECT_LT(words.size(), 500u);
}

}  // namespace
}  // namespace muster::bmc
