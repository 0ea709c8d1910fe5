// SPDX-License-Identifier: Apache-2.0
// Where values fall into two parts, if they do. Whether these are two populations is for who asks:
// isolation needs the upper one of noisy rates, reports need both, far apart and with a gap.
#pragma once

#include <cstddef>
#include <span>

namespace muster::validate::history {

/// Where the means of two parts are furthest apart, each weighed by its number (Otsu's threshold).
/// Shape:  sorted values, the smallest part that counts → size of the lower part
/// Errors: 0 where there is no such cut: too few values, or sums beyond a double
/// Source: N. Otsu, A threshold selection method from gray-level histograms, IEEE SMC 9 (1979)
inline std::size_t bestCut(std::span<const double> sorted, std::size_t least) {
  double all = 0, low = 0, most = -1;
  for (const double value : sorted) all += value;
  const auto n = static_cast<double>(sorted.size());
  std::size_t best = 0;
  for (std::size_t k = 1; k < sorted.size(); ++k) {
    low += sorted[k - 1];
    if (k < least || sorted.size() - k < least) continue;
    const auto count = static_cast<double>(k);
    const double apart = low / count - (all - low) / (n - count),
                 between = count * (n - count) * apart * apart;
    if (between > most) most = between, best = k;
  }
  return best;
}

}  // namespace muster::validate::history
