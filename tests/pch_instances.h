// SPDX-License-Identifier: Apache-2.0
// What base/pch_instances.h is to all files, for tests: what most of them ask of GoogleTest.
#pragma once

#include "base/result.h"
#include "tests/print_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::precompiled {

inline void useExpect(const std::string& text, std::string_view view, int number, unsigned small,
                      std::size_t size, double real, ErrorCode code, const nlohmann::json& json) {
  EXPECT_EQ(text, text) << text << "text" << view << number << size << json;
  EXPECT_EQ(view, view);
  EXPECT_EQ(text, "") << text.c_str();
  EXPECT_EQ(text, "a");
  EXPECT_EQ(number, number);
  EXPECT_EQ(size, small);
  EXPECT_EQ(size, size);
  EXPECT_EQ(size, number > 0 ? 1U : 2U);
  EXPECT_EQ(real, real);
  EXPECT_EQ(code, code);
  EXPECT_EQ(json, json);
  EXPECT_EQ(json, "text");
  EXPECT_EQ(json, number);
  EXPECT_NE(text, text);
  EXPECT_NE(text.find('a'), std::string::npos);
  EXPECT_LT(number, number);
  EXPECT_LE(number, number);
  EXPECT_GT(number, number);
  EXPECT_GE(number, number);
  EXPECT_LT(size, size);
  EXPECT_LE(size, size);
  EXPECT_GT(size, size);
  EXPECT_GE(size, size);
  EXPECT_LT(size, small);
  EXPECT_GT(size, small);
  EXPECT_GE(size, small);
  EXPECT_NEAR(real, real, real);
  EXPECT_TRUE(number > 0) << text;
  EXPECT_FALSE(number > 0) << text;
  ASSERT_TRUE(number > 0) << text;
  ASSERT_EQ(size, small);
  ASSERT_EQ(size, size);
  FAIL() << text;
}

inline void useMatchers(const std::string& text, const std::vector<std::string>& list) {
  using testing::AllOf, testing::AnyOf, testing::Contains, testing::Each, testing::ElementsAre,
      testing::EndsWith, testing::HasSubstr, testing::IsEmpty, testing::Not, testing::SizeIs,
      testing::StartsWith, testing::UnorderedElementsAre;
  EXPECT_THAT(text, HasSubstr(text));
  EXPECT_THAT(text, HasSubstr("a"));
  EXPECT_THAT(text, Not(HasSubstr("a")));
  EXPECT_THAT(text, AllOf(HasSubstr("a"), HasSubstr("b")));
  EXPECT_THAT(text, AllOf(HasSubstr("a"), HasSubstr("b"), HasSubstr("c")));
  EXPECT_THAT(text, AllOf(HasSubstr("a"), HasSubstr("b"), HasSubstr("c"), HasSubstr("d")));
  EXPECT_THAT(text, AllOf(HasSubstr("a"), Not(HasSubstr("b"))));
  EXPECT_THAT(text, AnyOf(HasSubstr("a"), HasSubstr("b")));
  EXPECT_THAT(text, StartsWith("a"));
  EXPECT_THAT(text, EndsWith("a"));
  EXPECT_THAT(text, IsEmpty());
  EXPECT_THAT(list, IsEmpty());
  EXPECT_THAT(list, Not(IsEmpty()));
  EXPECT_THAT(list, SizeIs(1));
  EXPECT_THAT(list, Contains("a"));
  EXPECT_THAT(list, Contains(text));
  EXPECT_THAT(list, Contains(HasSubstr("a")));
  EXPECT_THAT(list, Not(Contains("a")));
  EXPECT_THAT(list, Not(Contains(HasSubstr("a"))));
  EXPECT_THAT(list, Each(HasSubstr("a")));
  EXPECT_THAT(list, ElementsAre(text));
  EXPECT_THAT(list, ElementsAre("a"));
  EXPECT_THAT(list, ElementsAre("a", "b"));
  EXPECT_THAT(list, ElementsAre("a", "b", "c"));
  EXPECT_THAT(list, ElementsAre(HasSubstr("a")));
  EXPECT_THAT(list, ElementsAre(HasSubstr("a"), HasSubstr("b")));
  EXPECT_THAT(list, UnorderedElementsAre("a", "b"));
  EXPECT_EQ(list, list);
  EXPECT_EQ(list, std::vector<std::string>{text});
}

}  // namespace muster::precompiled
