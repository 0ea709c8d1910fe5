// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/pair_rates.h"

#include <gtest/gtest.h>

namespace muster::validate::isolate {
namespace {

TEST(PairRates, twoNodesAloneAreNoMeasureHoweverOftenTheyAreTested) {
  PairRates rates;
  EXPECT_FALSE(rates.isEnough());
  for (int i = 0; i < 100; ++i) rates.put(i % 2, 1 - i % 2, 390);
  EXPECT_FALSE(rates.isEnough()) << "one pair, either way round";
  rates.put(0, 2, 390);
  EXPECT_FALSE(rates.isEnough());
  rates.put(1, 2, 390);
  EXPECT_TRUE(rates.isEnough());
  EXPECT_FALSE(rates.isManyPairs());
}

/// One of four is slow, and its pairs are tested again and again.
TEST(PairRates, aSuspectThatIsTestedOftenerIsNotWhatIsTypical) {
  PairRates rates;
  for (int a = 0; a < 4; ++a)
    for (int b = a + 1; b < 4; ++b)
      for (int times = 0; times < (a == 0 ? 20 : 1); ++times) rates.put(a, b, a == 0 ? 100 : 400);
  ASSERT_TRUE(rates.isEnough());
  EXPECT_EQ(rates.typical(), 400);
}

/// With three of six slow one pair of five is healthy: the upper quartile is not.
TEST(PairRates, whereHalfOfFewAreSlowTheFewHealthyPairsSayIt) {
  PairRates rates;
  for (int a = 0; a < 6; ++a)
    for (int b = a + 1; b < 6; ++b) rates.put(a, b, a < 3 ? 100 : 390 + b);
  EXPECT_NEAR(rates.typical(), 395, 1);
}

TEST(PairRates, ofManyPairsTheTopmostClusterCounts) {
  PairRates rates;
  for (int a = 0; a < 12; ++a)
    for (int b = a + 1; b < 12; ++b) rates.put(a, b, (a < 8 ? 200 : 400) + (a + b) % 3);
  ASSERT_TRUE(rates.isManyPairs());
  EXPECT_NEAR(rates.typical(), 401, 1) << "six of 66 pairs are of two healthy nodes";
}

TEST(Quantile, isTheValueThatSoManyLieBelow) {
  std::vector<double> values{5, 1, 4, 2, 3};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 1), 5);
}

}  // namespace
}  // namespace muster::validate::isolate
