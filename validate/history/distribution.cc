// SPDX-License-Identifier: Apache-2.0
#include "validate/history/distribution.h"

#include "validate/history/best_cut.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>

namespace muster::validate::history {
namespace {

constexpr double kMadToSigma = 1.4826;
constexpr double kNear = 1, kFar = 5;  ///< σ towards the good side
constexpr double kMixedShare = 0.02;   ///< of a group, further out than kFar
constexpr std::size_t kFewestOfTail = 20;
constexpr std::size_t kLeastPopulation = 3;
constexpr int kDepth = 3;            ///< of cuts within parts: eight places are enough
constexpr double kStepSigma = 0.29;  ///< σ of what is rounded to whole steps, in steps

std::size_t leastOf(std::size_t count) {
  return std::max(kLeastPopulation,
                  static_cast<std::size_t>(std::ceil(kMixedShare * static_cast<double>(count))));
}

using Span = std::span<const double>;

void addCuts(Span sorted, std::size_t begin, std::size_t end, std::size_t least, int depth,
             std::set<std::size_t>& out) {
  const auto cut = depth > 0 ? bestCut(sorted.subspan(begin, end - begin), least) : 0;
  if (cut == 0) return;
  out.insert(begin + cut);
  addCuts(sorted, begin, begin + cut, least, depth - 1, out);
  addCuts(sorted, begin + cut, end, least, depth - 1, out);
}

/// The smallest difference of two values that differ.
double stepOf(Span sorted) {
  double step = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (const double each = sorted[i] - sorted[i - 1]; each > 0 && (step == 0 || each < step))
      step = each;
  return step;
}

Scale scaleWithin(Span values) { return scaleOf({values.begin(), values.end()}); }

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

const Scale& Populations::of(double value) const {
  const auto after = std::ranges::upper_bound(parts, value, {}, &Part::from);
  if (after != parts.begin()) return std::prev(after)->scale;
  return isLow(value) ? low : high;
}

/// Every cut within cuts, without those that part nothing: the worst first, because what is left
/// beside it has another scale then.
std::vector<Populations> placesOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const Span sorted(values);
  const auto count = values.size();
  std::set<std::size_t> cuts;
  addCuts(sorted, 0, count, leastOf(count), kDepth, cuts);
  const double step_sigma = kStepSigma * stepOf(sorted);
  std::vector<Populations> out;
  while (cuts.size() > 1) {
    out.clear();
    std::size_t weakest = 0, begin = 0;
    double least = 1;  // of what a cut must have
    for (auto cut = cuts.begin(); cut != cuts.end(); begin = *cut++) {
      const auto end = std::next(cut) == cuts.end() ? count : *std::next(cut);
      const auto low = scaleWithin(sorted.subspan(begin, *cut - begin)),
                 high = scaleWithin(sorted.subspan(*cut, end - *cut));
      const double sigma = std::max({low.sigma, high.sigma, step_sigma}),
                   gap = sorted[*cut] - sorted[*cut - 1], distance = high.median - low.median,
                   has = std::min(gap / (kTwoPopulationsGap * sigma),
                                  distance / (kTwoPopulations * sigma));
      if (has <= least) least = has, weakest = *cut;
      out.push_back({.low = low,
                     .high = high,
                     .border = sorted[*cut],
                     .below = *cut,
                     .above = count - *cut,
                     .sigmas = distance / sigma});
    }
    if (weakest == 0) break;
    cuts.erase(weakest);
    out.clear();
  }
  std::vector<Populations::Part> parts;
  for (const auto& way : out) {
    if (parts.empty()) parts.push_back({sorted.front(), way.low});
    parts.push_back({way.border, way.high});
  }
  for (auto& way : out) way.parts = parts;
  return out;
}

/// Whether the best cut parts anything is said by the distance of the medians and by the gap.
std::optional<Populations> populationsOf(std::vector<double> values) {
  const auto count = values.size();
  const auto least = leastOf(count);
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
