// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/upper_mode.h"

#include <algorithm>
#include <cmath>

namespace muster::validate::isolate {
namespace {

constexpr double kFewestOfMode = 6;
constexpr double kShareOfMode = 0.03;
constexpr double kSignificant = 2.5;   ///< σ of the difference of two counts
constexpr double kLeastWidth = 0.004;  ///< of a window to either side, relative
constexpr double kMostWidth = 0.05;    ///< what is wider is no cluster
constexpr double kWidthSigmas = 2;
constexpr double kQuarterOfNormal = 0.637;  ///< σ that the middle quarter of normal values spans
constexpr double kFarthest = 3;             ///< below e⁻³ of the highest nobody is healthy

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

}  // namespace

double upperMode(std::vector<double>& rates) {
  std::sort(rates.begin(), rates.end());
  const double width = std::clamp(kWidthSigmas * densestSigma(rates), kLeastWidth, kMostWidth);
  const auto counted = [&](double log_rate) {
    const auto low = std::lower_bound(rates.begin(), rates.end(), std::exp(log_rate - width));
    const auto high = std::upper_bound(low, rates.end(), std::exp(log_rate + width));
    return static_cast<double>(high - low);
  };
  const double fewest = std::max(kFewestOfMode, kShareOfMode * static_cast<double>(rates.size()));
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

}  // namespace muster::validate::isolate
