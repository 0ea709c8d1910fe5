// SPDX-License-Identifier: Apache-2.0
// The contract of Measurements, in the database of every store that has one.
#include "lifecycle/store/measurements.h"
#include "tests/lifecycle/store_contract.h"

#include <cmath>
#include <limits>

namespace muster::lifecycle {
namespace {

std::vector<MeasuredSet> fleet(int nodes, WallTime at) {
  std::vector<MeasuredSet> sets;
  for (int i = 0; i < nodes; ++i)
    sets.push_back({at,
                    NodeName("n" + std::to_string(i)),
                    "gate.burn-in",
                    "sku",
                    "rack",
                    {{"gpu.burn/gemm_bf16_gflops@gpu0", 700'000 + 0.1 * i},
                     {"tiny_us", 5e-324},
                     {"huge_gbits", 1.7976931348623157e308}}});
  return sets;
}

TEST_P(StoreContract, measurementsComeBackToTheLastBitOldestFirst) {
  if (maker_->url().empty()) GTEST_SKIP() << "this store has no database";
  auto kept = openMeasurements(maker_->url());
  ASSERT_TRUE(kept) << kept.error().str();
  EXPECT_TRUE((*kept)->since(kNow - std::chrono::hours(10'000))->empty());
  const auto later = fleet(1'500, kNow + std::chrono::milliseconds(1)),
             earlier = fleet(3, kNow);  // more than one fetch takes
  ASSERT_TRUE((*kept)->add(later));
  ASSERT_TRUE((*kept)->add(earlier));
  const auto all = (*kept)->since(kNow);
  ASSERT_TRUE(all) << all.error().str();
  ASSERT_EQ(all->size(), 1'503u);
  for (std::size_t i = 0; i < all->size(); ++i) {
    const auto& expected = i < 3 ? earlier[i] : later[i - 3];
    ASSERT_EQ((*all)[i].at, expected.at);
    ASSERT_EQ((*all)[i].node, expected.node);
    ASSERT_EQ((*all)[i].numbers, expected.numbers);
  }
  EXPECT_EQ((*kept)->since(kNow + std::chrono::milliseconds(1))->size(), 1'500u);
  EXPECT_TRUE((*kept)->since(kNow + std::chrono::milliseconds(2))->empty());
}

TEST_P(StoreContract, measurementsTakeAnyTextAndLeaveOutWhatIsNoNumber) {
  if (maker_->url().empty()) GTEST_SKIP() << "this store has no database";
  auto kept = openMeasurements(maker_->url());
  ASSERT_TRUE(kept);
  MeasuredSet odd{kNow,
                  NodeName("odd'; DROP TABLE measured;--"),
                  "o'ü\n",
                  "",
                  "r\"",
                  {{"a b", 1},
                   {"nan", std::nan("")},
                   {"inf", std::numeric_limits<double>::infinity()},
                   {"a=b", 1},
                   {"c;d", 2}}};
  ASSERT_TRUE((*kept)->add({odd,
                            {kNow, NodeName("empty"), "o", "s", "r", {}},
                            {kNow, NodeName("nothing"), "o", "s", "r", {{"nan", std::nan("")}}}}));
  const auto all = (*kept)->since(kNow);
  ASSERT_TRUE(all) << all.error().str();
  ASSERT_EQ(all->size(), 1u) << "a set without any number is no row";
  EXPECT_EQ((*all)[0].node, odd.node);
  EXPECT_EQ((*all)[0].origin, odd.origin);
  EXPECT_EQ((*all)[0].rack, odd.rack);
  EXPECT_EQ((*all)[0].numbers, (std::map<std::string, double>{{"a b", 1}}));
}

}  // namespace
}  // namespace muster::lifecycle
