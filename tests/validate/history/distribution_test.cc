// SPDX-License-Identifier: Apache-2.0
#include "validate/history/distribution.h"
#include "validate/history/best_cut.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::validate::history {
namespace {

TEST(Distribution, sigmasForIsTheNormalQuantile) {
  EXPECT_NEAR(sigmasFor(0.5), 0, 1e-9);
  EXPECT_NEAR(sigmasFor(0.0227501), 2, 1e-4);
  EXPECT_NEAR(sigmasFor(2.8665e-7), 5, 1e-3);
}

TEST(Distribution, aScaleIsNotMovedByAnOutlier) {
  const auto scale = scaleOf({1, 2, 3, 4, 1e9});
  EXPECT_EQ(scale.median, 3);
  EXPECT_NEAR(scale.sigma, 1.4826, 1e-9);
}

/// Values of one distribution, whatever its tails, are hardly ever taken for two populations.
TEST(Distribution, noiseIsOnePopulation) {
  std::mt19937_64 random(17);
  std::normal_distribution<double> normal;
  std::student_t_distribution<double> heavy(4);
  for (const std::size_t count : {16u, 32u, 256u})
    for (const bool tails : {false, true}) {
      int two = 0;
      for (int trial = 0; trial < 1'000; ++trial) {
        std::vector<double> values(count);
        for (auto& value : values) value = tails ? heavy(random) : normal(random);
        two += populationsOf(std::move(values)).has_value();
      }
      EXPECT_LE(two, 3) << count << ' ' << tails;
    }
}

TEST(Distribution, twoPlacesWithNothingBetweenAreTwoPopulations) {
  std::mt19937_64 random(18);
  std::normal_distribution<double> normal;
  for (const std::size_t low : {3u, 8u, 16u, 29u}) {
    std::vector<double> values(32);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = normal(random) + (i < low ? 0 : 30);
    const auto two = populationsOf(values);
    ASSERT_TRUE(two) << low;
    EXPECT_EQ(two->below, low);
    EXPECT_EQ(two->above, 32 - low);
    EXPECT_TRUE(two->isLow(values[0]));
    EXPECT_FALSE(two->isLow(values[31]));
    EXPECT_NEAR(two->high.median - two->low.median, 30, 3);
  }
}

TEST(Distribution, equalValuesInTwoPlacesAreTwoPopulations) {
  EXPECT_TRUE(populationsOf({1, 1, 1, 2, 2, 2}));
  EXPECT_FALSE(populationsOf({1, 1, 1, 1, 1, 1}));
  EXPECT_FALSE(populationsOf({1, 1, 1, 1, 2, 2})) << "two are outliers";
  EXPECT_FALSE(populationsOf({}));
  EXPECT_FALSE(populationsOf(std::vector<double>(32, 1e308))) << "their sum is no number";
}

TEST(BestCut, isWhereTheMeansOfTwoPartsAreFurthestApart) {
  const std::vector<double> values{1, 2, 2, 9, 10, 10, 11};
  EXPECT_EQ(bestCut(values, 1), 3u);
  EXPECT_EQ(bestCut(values, 4), 0u) << "seven have no two parts of four";
  EXPECT_EQ(bestCut(std::vector<double>{5}, 1), 0u);
  EXPECT_EQ(bestCut({}, 1), 0u);
  const std::vector<double> outlier{1, 10, 10, 10, 10, 11};
  EXPECT_EQ(bestCut(outlier, 1), 1u);
  EXPECT_NE(bestCut(outlier, 2), 1u) << "one value is no part";
}

}  // namespace
}  // namespace muster::validate::history
