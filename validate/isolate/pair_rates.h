// SPDX-License-Identifier: Apache-2.0
// What pairs of nodes have reached, where there are too few tests of one kind in a round: those of
// all rounds together. Internal to the isolation.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace muster::validate::isolate {

/// The value that this share of the sorted values lies below; `values` is reordered. At least one
/// value.
double quantile(std::vector<double>& values, double share);
class PairRates {
 public:
  /// `gbits` above 0.
  void put(int a, int b, double gbits);
  /// Whether enough pairs say something: two nodes alone are no measure of each other, however
  /// often they are tested.
  bool isEnough();
  /// So many that the topmost cluster of all tests can be told.
  bool isManyPairs();
  /// What a healthy pair reaches. A bad node of few takes part in half of their tests, so the upper
  /// quartile of the pairs says it. Only where isEnough().
  double typical();

 private:
  void count();

  std::vector<std::pair<std::pair<int, int>, double>> rates_;  ///< the smaller number first
  std::size_t pairs_ = 0;
  bool is_counted_ = false;  ///< then rates_ are sorted
};

}  // namespace muster::validate::isolate
