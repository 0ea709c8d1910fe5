// SPDX-License-Identifier: Apache-2.0
#include "validate/history/distribution.h"

#include "validate/history/best_cut.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace muster::validate::history {
namespace {

constexpr double kMadToSigma = 1.4826;
constexpr double kNear = 1, kFar = 5;  ///< σ towards the good side
constexpr double kMixedShare = 0.02;   ///< of a group, further out than kFar
constexpr std::size_t kFewestOfTail = 20;
constexpr std::size_t kLeastPopulation = 3;

}  // namespace

double medianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Scale scaleOf(std::vector<double> values) {
  Scale out;
  out.median = medianOf(values);
  for (auto& value : values) value = std::abs(value - out.median);
  out.sigma = kMadToSigma * medianOf(values);
  return out;
}

double sigmasFor(double probability) {
  double low = 0, high = 12;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::sqrt(2.0)) > probability ? low : high) = middle;
  }
  return high;
}

/// Whether the best cut parts anything is said by the distance of the medians and by the gap.
std::optional<Populations> populationsOf(std::vector<double> values) {
  const auto count = values.size();
  const auto least =
      std::max(kLeastPopulation,
               static_cast<std::size_t>(std::ceil(kMixedShare * static_cast<double>(count))));
  if (count < 2 * least) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto cut = bestCut(values, least);
  if (cut == 0) return std::nullopt;  // sums beyond a double part nothing
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(cut);
  Populations out{.low = scaleOf({values.begin(), at}),
                  .high = scaleOf({at, values.end()}),
                  .border = *at,
                  .below = cut,
                  .above = count - cut};
  const double sigma = std::max(out.low.sigma, out.high.sigma);
  const double distance = out.high.median - out.low.median, gap = *at - *(at - 1);
  if (!(gap > kTwoPopulationsGap * sigma) || !(distance > kTwoPopulations * sigma))
    return std::nullopt;
  out.sigmas = sigma > 0 ? distance / sigma : kTwoPopulations * 2;
  return out;
}

void NoiseTail::add(const std::vector<double>& good) {
  if (isMixed(good)) return;
  for (const double each : good)
    if (each > kNear) far_.push_back(each);
  count_ += good.size();
}

bool NoiseTail::isMixed(const std::vector<double>& good) {
  const auto far = std::count_if(good.begin(), good.end(), [](double each) { return each > kFar; });
  return static_cast<double>(far) > kMixedShare * static_cast<double>(good.size()) && far > 2;
}

double NoiseTail::limit(double alarms, std::size_t comparisons) {
  const double normal =
      sigmasFor(alarms / static_cast<double>(std::max<std::size_t>(comparisons, 1)));
  std::sort(far_.rbegin(), far_.rend());
  const std::size_t k = std::min(far_.size(), std::max<std::size_t>(kFewestOfTail, count_ / 200));
  if (k < kFewestOfTail) return normal;
  double shape = 0;
  for (std::size_t i = 0; i + 1 < k; ++i)
    shape += std::log(far_[i] / far_[k - 1]) / static_cast<double>(k - 1);
  const double expected = static_cast<double>(k) / static_cast<double>(count_) *
                          static_cast<double>(comparisons) / 2;  // beyond the k-th, on one side
  return std::max(
      normal,
      std::min(far_.front(), far_[k - 1] * std::pow(std::max(expected / alarms, 1.0), shape)));
}

}  // namespace muster::validate::history
