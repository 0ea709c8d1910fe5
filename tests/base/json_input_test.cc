// SPDX-License-Identifier: Apache-2.0
#include "base/json_input.h"

#include "base/json_output.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

using nlohmann::json;

constexpr JsonLimits kSmall{"the test",         1'000'000, 4, 10, DuplicateKeys::Refused,
                            BrokenUtf8::Refused};

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

std::string problemOf(std::string_view text, JsonLimits limits = kSmall) {
  const auto parsed = parseJson(text, limits);
  EXPECT_FALSE(parsed);
  return parsed ? "" : parsed.error().text();
}

TEST(JsonInput, readsWhatTheStandardAllows) {
  const auto parsed =
      parseJson(R"( {"a": [1, -2, 2.5, true, null], "b": {"c": "\u00e9\n"}} )", kSmall);
  ASSERT_TRUE(parsed) << parsed.error().str();
  EXPECT_EQ(*parsed, (json{{"a", {1, -2, 2.5, true, nullptr}}, {"b", {{"c", "é\n"}}}}));
  EXPECT_EQ(*parseJson("7", kSmall), 7);
}

struct Party {
  const char* name;
  JsonLimits limits;
};

class EveryParty : public testing::TestWithParam<Party> {};

TEST_P(EveryParty, mayNestSoDeepAndNoDeeper) {
  const auto& limits = GetParam().limits;
  const auto fits = parseJson(nested(limits.levels), limits);
  ASSERT_TRUE(fits) << fits.error().str();
  const json copy = *fits;
  EXPECT_EQ(jsonText(copy), nested(limits.levels));
  EXPECT_NE(problemOf(nested(limits.levels + 1), limits).find("nested deeper"), std::string::npos);
  for (const std::size_t levels : {1'000u, 100'000u}) {
    EXPECT_NE(problemOf(nested(levels), limits).find("nested deeper"), std::string::npos);
    EXPECT_NE(problemOf(std::string(levels, '['), limits).find("nested deeper"), std::string::npos);
    std::string objects;
    for (std::size_t i = 0; i < levels; ++i) objects += R"({"a":)";
    EXPECT_NE(problemOf(objects, limits).find("nested deeper"), std::string::npos);
    EXPECT_TRUE(jsonOrNone(objects, limits).is_discarded());
  }
}

INSTANTIATE_TEST_SUITE_P(JsonInput, EveryParty,
                         testing::Values(Party{"agent", kAgentJson}, Party{"order", kOrderJson},
                                         Party{"bmc", kBmcJson}, Party{"tool", kToolJson},
                                         Party{"index", kIndexJson}, Party{"archive", kArchiveJson},
                                         Party{"server", kServerJson}, Party{"file", kFileJson},
                                         Party{"kept", kKeptJson}),
                         [](const auto& row) { return row.param.name; });

TEST(JsonInput, countsValuesAndBytes) {
  EXPECT_TRUE(parseJson("[1,2,3,4,5,6,7,8,9]", kSmall));
  EXPECT_NE(problemOf("[1,2,3,4,5,6,7,8,9,10]").find("more than 10 values"), std::string::npos);
  EXPECT_NE(problemOf("[[],[],[],[],[],[],[],[],[],[]]").find("more than 10 values"),
            std::string::npos);
  EXPECT_NE(problemOf(std::string(kSmall.bytes, ' ') + "1").find("1000001 bytes"),
            std::string::npos);
}

TEST(JsonInput, keysTwiceAreRefusedOrTheLastCounts) {
  EXPECT_NE(problemOf(R"({"a": 1, "b": 2, "a": 3})").find("key twice"), std::string::npos);
  auto lenient = kSmall;
  lenient.duplicates = DuplicateKeys::LastWins;
  EXPECT_EQ(*parseJson(R"({"a": [1, 2], "b": 2, "a": 3})", lenient), (json{{"a", 3}, {"b", 2}}));
}

TEST(JsonInput, bytesThatAreNoUtf8AreRefusedOrReplaced) {
  EXPECT_NE(problemOf("[\"S\xE9rie\"]").find("not JSON at byte"), std::string::npos);
  auto lenient = kSmall;
  lenient.broken = BrokenUtf8::Replaced;
  EXPECT_EQ(*parseJson("[\"S\xE9rie\"]", lenient), json{"S\xEF\xBF\xBDrie"});
}

TEST(JsonInput, numbersBeyondADoubleAreRefused) {
  EXPECT_NE(problemOf("[1e999]").find("number out of range"), std::string::npos);
  EXPECT_TRUE(parseJson("[123456789012345678901234567890]", kSmall)->at(0).is_number_float());
}

TEST(JsonInput, anErrorSaysWhoAndWhereAndQuotesNothing) {
  for (const auto* text :
       {"", "{", "[1,]", "secret", "{\"secret\" 1}", "[1] secret", "\"secret", "nul"}) {
    const auto problem = problemOf(text);
    EXPECT_TRUE(problem.starts_with("the test is not JSON at byte")) << problem;
    EXPECT_EQ(problem.find("secret"), std::string::npos) << problem;
    EXPECT_TRUE(jsonOrNone(text, kSmall).is_discarded());
  }
}

TEST(JsonOutput, printsBytesThatAreNoUtf8) {
  EXPECT_EQ(jsonText(json{"a\xE9"}), "[\"a\xEF\xBF\xBD\"]");
}

}  // namespace
}  // namespace muster
