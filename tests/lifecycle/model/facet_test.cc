// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/facet.h"

#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

TEST(Glob, starAndQuestionMarkMatch) {
  EXPECT_TRUE(matches("575.57.08", "575.57.08"));
  EXPECT_TRUE(matches("575.*", "575.57.08"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("a?c", "abc"));
  EXPECT_TRUE(matches("*b*d", "abcd"));
  EXPECT_TRUE(matches("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches("575.*", "5750"));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a", ""));
  EXPECT_FALSE(matches("a?", "a"));
  EXPECT_FALSE(matches("a*b", "ac"));
}

TEST(Glob, manyStarsOnALongValueAreQuick) {
  const std::string value(20'000, 'a');
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*b", value));
}

TEST(FactSet, keepsOneFactAFacet) {
  FactSet facts;
  const Subject a(NodeName("a")), b(NodeName("b"));
  facts.put({a, FacetName("image"), "1", {}, "", ""});
  facts.put({a, FacetName("image"), "2", {}, "", ""});
  facts.put({a, FacetName("os"), "", {}, "", ""});
  facts.put({b, FacetName("image"), "3", {}, "", ""});
  EXPECT_EQ(facts.value(a, FacetName("image")), "2");
  EXPECT_EQ(facts.find(a, FacetName("os")), nullptr);
  EXPECT_EQ(facts.of(a).size(), 1u);
  facts.forget(a, FacetName("image"));
  EXPECT_TRUE(facts.of(a).empty());
  EXPECT_EQ(facts.all().size(), 1u);
}

TEST(Disruption, wordsGoBothWays) {
  for (auto disruption : {Disruption::None, Disruption::Drain, Disruption::Reset, Disruption::Wipe})
    EXPECT_EQ(parseDisruption(toString(disruption)), disruption);
  EXPECT_EQ(parseDisruption("explode"), std::nullopt);
}

}  // namespace
}  // namespace muster::lifecycle
