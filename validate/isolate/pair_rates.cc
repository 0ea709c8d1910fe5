// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/pair_rates.h"

#include "validate/isolate/upper_mode.h"

#include <algorithm>
#include <functional>

namespace muster::validate::isolate {
namespace {

constexpr std::size_t kFewest = 3;  ///< pairs; with fewer in all there is nothing to compare with
constexpr std::size_t kEnoughForMode = 64, kEnoughPairs = 48;
constexpr double kWidthOfFew = 0.04;  ///< healthy pairs of few differ by less

}  // namespace

double quantile(std::vector<double>& values, double share) {
  const auto place =
      static_cast<std::ptrdiff_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

void PairRates::put(int a, int b, double gbits) {
  rates_.push_back({{std::min(a, b), std::max(a, b)}, gbits});
  is_counted_ = false;
}

void PairRates::count() {
  if (is_counted_) return;
  std::sort(rates_.begin(), rates_.end());
  pairs_ = 0;
  for (std::size_t i = 0; i < rates_.size(); ++i)
    pairs_ += i == 0 || rates_[i].first != rates_[i - 1].first;
  is_counted_ = true;
}

bool PairRates::isEnough() {
  count();
  return pairs_ >= kFewest;
}

bool PairRates::isManyPairs() {
  count();
  return pairs_ >= kEnoughPairs;
}

double PairRates::typical() {
  count();
  std::vector<double> of_pairs, own;
  if (rates_.size() >= kEnoughForMode && pairs_ >= kEnoughPairs) {
    for (const auto& [pair, rate] : rates_) own.push_back(rate);
    return upperMode(own);
  }
  for (std::size_t i = 0; i < rates_.size(); ++i) {  // suspects are tested oftener
    own.push_back(rates_[i].second);
    if (i + 1 < rates_.size() && rates_[i + 1].first == rates_[i].first) continue;
    of_pairs.push_back(quantile(own, 0.5));
    own.clear();
  }
  std::sort(of_pairs.rbegin(), of_pairs.rend());
  const double least = (1 - kWidthOfFew) * of_pairs[1], quartile = quantile(of_pairs, 0.75);
  if (quartile >= least) return quartile;
  // With half of few nodes slow fewer than a quarter of the pairs are healthy.
  std::erase_if(of_pairs, [least](double rate) { return rate < least; });
  return quantile(of_pairs, 0.5);
}

}  // namespace muster::validate::isolate
