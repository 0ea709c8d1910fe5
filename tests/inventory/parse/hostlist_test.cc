// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> expand(std::string_view text) {
  auto names = expandHostlist(text);
  EXPECT_TRUE(names) << text << ": " << (names ? "" : names.error().str());
  return names.value_or(std::vector<std::string>{});
}
std::string complaint(std::string_view text) {
  auto names = expandHostlist(text);
  EXPECT_FALSE(names) << text << " was accepted";
  return names ? "" : names.error().text();
}

TEST(Hostlist, keepsPaddingAndOrder) {
  EXPECT_THAT(expand("gpu[008-011,200],login1"),
              ElementsAre("gpu008", "gpu009", "gpu010", "gpu011", "gpu200", "login1"));
  EXPECT_THAT(expand("n[9-11]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(expand("n[98-101]"), ElementsAre("n98", "n99", "n100", "n101"));
  EXPECT_THAT(expand("n[09-11]"), ElementsAre("n09", "n10", "n11"));
}

TEST(Hostlist, severalRangesMultiplyWithTheLastFastest) {
  EXPECT_THAT(expand("r[1-2]n[01-02]-ib"),
              ElementsAre("r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"));
  EXPECT_THAT(expand("r[1-2][5,7]"), ElementsAre("r15", "r17", "r25", "r27"));
}

TEST(Hostlist, allowsSpacesBetweenNames) {
  EXPECT_THAT(expand(" a1 , b[1-2] "), ElementsAre("a1", "b1", "b2"));
}

TEST(Hostlist, saysWhereTheMistakeIsAndWhatToWrite) {
  EXPECT_THAT(complaint(""), HasSubstr("empty"));
  EXPECT_THAT(complaint("   "), HasSubstr("empty"));
  EXPECT_THAT(complaint("gpu[]"), HasSubstr("column 5: a number is missing"));
  EXPECT_THAT(complaint("gpu[1-]"), HasSubstr("column 7: the end of the range is missing"));
  EXPECT_THAT(complaint("gpu[,1]"), HasSubstr("column 5"));
  EXPECT_THAT(complaint("gpu[1,]"), HasSubstr("column 7"));
  EXPECT_THAT(complaint("gpu[128-001]"), HasSubstr("runs backwards; write 001-128"));
  EXPECT_THAT(complaint("gpu[001-10]"), HasSubstr("mixes two paddings; write 001-010"));
  EXPECT_THAT(complaint("gpu[1-010]"), HasSubstr("mixes two paddings"));
  EXPECT_THAT(complaint("gpu[1-2"), HasSubstr("column 4: '[' is never closed"));
  EXPECT_THAT(complaint("gpu1-2]"), HasSubstr("']' without '['"));
  EXPECT_THAT(complaint("gpu[1-2]],x"), HasSubstr("']' without '['"));
  EXPECT_THAT(complaint("a,,b"), HasSubstr("column 3"));
  EXPECT_THAT(complaint("a,"), HasSubstr("last comma"));
  EXPECT_THAT(complaint(",a"), HasSubstr("column 1"));
  EXPECT_THAT(complaint("a b"), HasSubstr("column 3"));
  EXPECT_THAT(complaint("g\xc3\xbcpu1"), HasSubstr("column 2"));
  EXPECT_THAT(complaint("gpu[1-99999999999999999999]"), HasSubstr("digits"));
  EXPECT_THAT(complaint("gpu[1 -2]"), HasSubstr("column 6"));
}

TEST(Hostlist, refusesMoreNamesThanItsBoundWithoutMakingThem) {
  EXPECT_THAT(complaint("gpu[1-999999999999999999]"), HasSubstr("1000000 names"));
  EXPECT_THAT(complaint("a[1-1000]b[1-1000]c[1-1000]d[1-1000]e[1-1000]f[1-1000]g[1-1000]"),
              HasSubstr("1000000 names"));
  EXPECT_THAT(complaint("a[1-600000],b[1-600000]"), HasSubstr("1000000 names"));
  EXPECT_EQ(expand("a[1-1000]b[1-1000]").size(), kMaxHostlistNames);
}

TEST(Hostlist, foldsToTheUsualSpelling) {
  EXPECT_EQ(foldHostlist({"gpu001", "gpu002", "gpu004"}), "gpu[001-002,004]");
  EXPECT_EQ(foldHostlist({"gpu004", "gpu001", "gpu002", "gpu001"}), "gpu[001-002,004]");
  EXPECT_EQ(foldHostlist({"login1"}), "login1");
  EXPECT_EQ(foldHostlist({}), "");
  EXPECT_EQ(foldHostlist({"n9", "n10", "n11"}), "n[9-11]");
  EXPECT_EQ(foldHostlist({"n09", "n10", "n100"}), "n[09-10,100]");
  EXPECT_EQ(foldHostlist({"r1n1", "r1n2", "r2n1", "r2n2"}), "r[1-2]n[1-2]");
  EXPECT_EQ(foldHostlist({"r1n1", "r1n2", "r2n1"}), "r1n[1-2],r2n1");
  EXPECT_EQ(foldHostlist({"gpu1", "cpu1", "gpu2"}), "cpu1,gpu[1-2]");
  EXPECT_EQ(foldHostlist({"n1", "n01", "n2", "n02"}), "n[1-2,01-02]");
}

TEST(Hostlist, foldsAThousandNodesToOneWord) {
  EXPECT_EQ(foldHostlist(expand("gpu[0001-1000]")), "gpu[0001-1000]");
  EXPECT_EQ(foldHostlist(expand("su[1-4]-r[01-16]-n[1-8]")), "su[1-4]-r[01-16]-n[1-8]");
}

TEST(HostlistProperty, expandUndoesFold) {
  std::mt19937 random(20261);
  auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  const std::vector<std::string> words{"gpu", "n", "r", "su", "a.b", "x-", "y_", ""};
  for (int round = 0; round < 500; ++round) {
    std::set<std::string> names;
    std::size_t size = 1 + below(40), dimensions = 1 + below(3);
    for (std::size_t i = 0; i < size; ++i) {
      std::string name = words[below(3)];
      for (std::size_t d = 0; d < dimensions; ++d) {
        std::string digits = std::to_string(below(d == 0 ? 5 : 130));
        if (below(2) == 0) digits.insert(0, below(3), '0');
        name += digits + words[below(words.size())];
      }
      names.insert(name);
    }
    std::string folded = foldHostlist({names.begin(), names.end()});
    auto back = expandHostlist(folded);
    ASSERT_TRUE(back) << folded << ": " << back.error().str();
    EXPECT_EQ(back->size(), names.size()) << folded;
    EXPECT_EQ(std::set<std::string>(back->begin(), back->end()), names) << folded;
    EXPECT_EQ(foldHostlist(*back), folded) << "folding is not stable";
  }
}

TEST(HostlistProperty, noTextCrashesTheParser) {
  std::mt19937 random(7);
  const std::string alphabet = "gn019[]-,. _\xc3\xff";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = std::uniform_int_distribution<int>(0, 14)(random); i > 0; --i)
      text += alphabet[std::uniform_int_distribution<std::size_t>(0, alphabet.size() - 1)(random)];
    auto names = expandHostlist(text);
    if (!names || names->size() > 1000) continue;
    ++accepted;
    std::set<std::string> once(names->begin(), names->end());
    auto back = expandHostlist(foldHostlist(*names));
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(std::set<std::string>(back->begin(), back->end()), once) << text;
  }
  EXPECT_GT(accepted, 500);
}

TEST(NaturalOrder, numbersByValueThenByPadding) {
  std::vector<std::string> names{"gpu10", "gpu2",  "gpu02",   "gpu1",    "gpu",
                                 "cpu9",  "gpu2a", "gpu10b1", "gpu10b01"};
  std::sort(names.begin(), names.end(), naturalLess);
  EXPECT_THAT(names, ElementsAre("cpu9", "gpu", "gpu1", "gpu02", "gpu2", "gpu2a", "gpu10",
                                 "gpu10b01", "gpu10b1"));
}

TEST(NaturalOrder, isAStrictTotalOrder) {
  std::mt19937 random(3);
  const std::string alphabet = "a019-";
  std::vector<std::string> names;
  for (int i = 0; i < 120; ++i) {
    std::string name;
    for (int n = std::uniform_int_distribution<int>(0, 5)(random); n > 0; --n)
      name += alphabet[std::uniform_int_distribution<std::size_t>(0, 4)(random)];
    names.push_back(name);
  }
  for (const auto& a : names)
    for (const auto& b : names) {
      EXPECT_EQ(naturalLess(a, b) + naturalLess(b, a), a == b ? 0 : 1) << a << " " << b;
      for (const auto& c : names)
        if (naturalLess(a, b) && naturalLess(b, c)) {
          ASSERT_TRUE(naturalLess(a, c)) << a << " " << b << " " << c;
        }
    }
}

}  // namespace
}  // namespace muster::inventory
