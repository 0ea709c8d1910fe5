// SPDX-License-Identifier: Apache-2.0
// What the healthy reach, from rates of which any share is slow.
#include "validate/isolate/upper_mode.h"

#include "tests/validate/normal_noise.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::validate::isolate {
namespace {

struct Cluster {
  double centre;
  int count;
  double sigma = 0.006;
};

std::vector<double> ratesOf(std::initializer_list<Cluster> clusters, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  test::NormalNoise noise;
  std::vector<double> out;
  for (const auto& cluster : clusters)
    for (int i = 0; i < cluster.count; ++i)
      out.push_back(cluster.centre * (1 + cluster.sigma * noise(random)));
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

TEST(UpperMode, oneClusterIsItsOwnCentre) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (const int count : {8, 16, 64, 128}) {
      auto rates = ratesOf({{390, count}}, seed);
      EXPECT_NEAR(upperMode(rates) / 390, 1, count < 64 ? 0.01 : 0.005) << seed << ' ' << count;
    }
}

TEST(UpperMode, theUpperOfTwoWhateverItsShare) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (const double slow : {0.5, 0.8, 0.9, 0.95})
      for (const int healthy : {16, 32, 62, 64, 100}) {
        auto rates = ratesOf({{390, healthy}, {390 * slow, 128 - healthy}}, seed);
        EXPECT_NEAR(upperMode(rates) / 390, 1, 0.015) << seed << ' ' << slow << ' ' << healthy;
      }
}

TEST(UpperMode, aFewLuckyOnesAreNoCluster) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    auto rates = ratesOf({{390, 125}, {420, 3}}, seed);
    EXPECT_NEAR(upperMode(rates) / 390, 1, 0.005) << seed;
  }
}

/// Leaves that differ by what noise is: none of them is what the others lack.
TEST(UpperMode, leavesThatDriftAreOneCluster) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    test::NormalNoise noise;
    std::vector<double> rates;
    for (int leaf = 0; leaf < 8; ++leaf) {
      const double centre = 390 * (1 + 0.01 * noise(random));
      for (int i = 0; i < 16; ++i) rates.push_back(centre * (1 + 0.005 * noise(random)));
    }
    EXPECT_NEAR(upperMode(rates) / 390, 1, 0.035) << seed;
  }
}

}  // namespace
}  // namespace muster::validate::isolate
