// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/upper_mode.h"

#include "validate/history/best_cut.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace muster::validate::isolate {
namespace {

constexpr double kFewestOfMode = 6;
constexpr double kShareOfMode = 0.03;
constexpr double kSignificant = 2.5;   ///< σ of the difference of two counts
constexpr double kLeastWidth = 0.004;  ///< of a window to either side, relative
constexpr double kMostWidth = 0.05;    ///< what is wider is no cluster
constexpr double kWidthSigmas = 2;
constexpr double kQuarterOfNormal = 0.637;  ///< σ that the middle quarter of normal values spans
constexpr double kApart = 4.5;  ///< σ of the wider of two clusters between their medians: halves of
                                ///< normal values are 2.3 apart, those of uniform ones 2.7
constexpr int kMostSplits = 16;
constexpr double kMadToSigma = 1.4826, kLeastSigma = 0.0025;
constexpr double kFarthest = 3;  ///< below e⁻³ of the highest nobody is healthy

/// σ of the densest quarter, if it were normal.
double densestSigma(const std::vector<double>& rates) {
  const std::size_t quarter = std::max<std::size_t>(2, rates.size() / 4);
  double least = kFarthest;
  for (std::size_t i = 0; i + quarter <= rates.size(); ++i)
    least = std::min(least, std::log(rates[i + quarter - 1] / rates[i]));
  return least / kQuarterOfNormal;
}

double medianFrom(const std::vector<double>& sorted, double least) {
  const auto begin = std::lower_bound(sorted.begin(), sorted.end(), least);
  return *(begin + (sorted.end() - begin) / 2);
}

using Rates = std::span<const double>;

double medianOf(Rates sorted) { return sorted[sorted.size() / 2]; }

/// By the median absolute deviation, relative to the median.
double robustSigma(Rates sorted) {
  const double median = medianOf(sorted);
  std::vector<double> off;
  for (const double rate : sorted) off.push_back(std::abs(std::log(rate / median)));
  std::nth_element(off.begin(), off.begin() + static_cast<std::ptrdiff_t>(off.size() / 2),
                   off.end());
  return kMadToSigma * off[off.size() / 2];
}

/// The place of the median of the uppermost part that is clearly apart from what lies below it; of
/// the lowest rate, where there is none.
std::size_t upperMedian(Rates sorted, double fewest) {
  std::vector<double> logs;
  for (const double rate : sorted) logs.push_back(std::log(rate));
  std::size_t begin = 0, found = 0;
  for (int split = 0; split < kMostSplits; ++split) {
    const auto rest = sorted.subspan(begin);
    if (rest.size() < 2) break;
    const auto lower = history::bestCut(Rates(logs).subspan(begin), 1);
    if (lower == 0) break;
    const auto below = rest.first(lower), above = rest.subspan(lower);
    if (static_cast<double>(above.size()) < fewest ||
        std::log(medianOf(above) / medianOf(below)) <
            kApart * std::max({robustSigma(below), robustSigma(above), kLeastSigma}))
      break;
    begin += lower, found = begin + above.size() / 2;
  }
  return found;
}

double topmostCluster(const std::vector<double>& rates, double fewest) {
  const double width = std::clamp(kWidthSigmas * densestSigma(rates), kLeastWidth, kMostWidth);
  const auto counted = [&](double log_rate) {
    const auto low = std::lower_bound(rates.begin(), rates.end(), std::exp(log_rate - width));
    const auto high = std::upper_bound(low, rates.end(), std::exp(log_rate + width));
    return static_cast<double>(high - low);
  };
  const double top = std::log(rates.back()),
               bottom = std::log(std::max(rates.front(), rates.back() * std::exp(-kFarthest)));
  double peak = 0, at = top;
  for (double x = top; x > bottom - 2 * width; x -= width / 2) {
    const double count = counted(x);
    if (count > peak) {
      peak = count, at = x;
    } else if (peak >= fewest && peak - count >= kSignificant * std::sqrt(peak + count)) {
      return medianFrom(rates, std::exp(at - 2 * width));
    }
  }
  return rates[rates.size() / 2];
}

}  // namespace

double upperMode(std::vector<double>& rates) {
  std::sort(rates.begin(), rates.end());
  const double fewest = std::max(kFewestOfMode, kShareOfMode * static_cast<double>(rates.size()));
  // Windows that are as wide as the noise seems see no gap between two clusters that lie close, and
  // two of a size make it seem twice as wide.
  return std::max(topmostCluster(rates, fewest), rates[upperMedian(rates, fewest)]);
}

}  // namespace muster::validate::isolate
