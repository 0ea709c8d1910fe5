// SPDX-License-Identifier: Apache-2.0
#include "validate/history/distribution.h"
#include "validate/history/best_cut.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace muster::validate::history {
namespace {

using ::testing::IsSupersetOf;

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

/// Sizes of the places that placesOf finds, from below.
std::vector<std::size_t> placesIn(const std::vector<double>& values) {
  std::vector<std::size_t> out;
  for (const auto& way : placesOf(values)) {
    EXPECT_EQ(way.below + way.above, values.size());
    out.push_back(way.below);
  }
  return out;
}

TEST(Distribution, threePlacesAndMoreHaveAWayForEachGap) {
  std::mt19937_64 random(19);
  std::normal_distribution<double> normal(0, 2);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<double> values;
    for (const double at : {400, 400, 360, 320})
      for (int i = 0; i < 10; ++i) values.push_back(at + normal(random));
    EXPECT_FALSE(populationsOf(values)) << "the upper two are one wide part";
    std::shuffle(values.begin(), values.end(), random);
    const auto places = placesIn(values);
    EXPECT_THAT(places, IsSupersetOf({10u, 20u})) << trial;
    EXPECT_LE(places.size(), 3u) << "few values have a chance gap";
    const auto ways = placesOf(values);
    EXPECT_NEAR(ways.back().of(362).median, 360, 3);
    EXPECT_NEAR(ways.back().of(399).median, 400, 3);
  }
}

TEST(Distribution, noiseHasNoPlaces) {
  std::mt19937_64 random(20);
  std::normal_distribution<double> normal;
  std::student_t_distribution<double> heavy(4);
  for (const std::size_t count : {16u, 32u, 256u})
    for (const bool tails : {false, true}) {
      int found = 0;
      for (int trial = 0; trial < 1'000; ++trial) {
        std::vector<double> values(count);
        for (auto& value : values) value = tails ? heavy(random) : normal(random);
        found += !placesOf(std::move(values)).empty();
      }
      EXPECT_LE(found, 3) << count << ' ' << tails;
    }
  EXPECT_TRUE(placesIn({40, 40, 40, 41, 41, 41, 42, 42, 42, 43, 43, 43}).empty())
      << "whole degrees";
  EXPECT_TRUE(placesIn({}).empty());
  EXPECT_TRUE(placesIn({1, 1, 1, 2, 2, 2}).empty()) << "two are no three";
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
