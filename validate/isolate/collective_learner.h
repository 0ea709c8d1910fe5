// SPDX-License-Identifier: Apache-2.0
// What collectives say: an all-to-all tells the rate of every pair, an all-reduce one rate a group.
// Internal.
#pragma once

#include "validate/isolate/state.h"

namespace muster::validate::isolate {

class CollectiveLearner {
 public:
  explicit CollectiveLearner(Isolation::State& state) : state_(state) {}

  void learn(const RoundResult& result);

 private:
  /// What one node met in an all-to-all, on one rail.
  struct Row {
    std::vector<float> shares;
    std::map<int, int> bad_by_leaf;
    int bad = 0, near = 0, bad_near = 0;  ///< near: nodes of its own leaf
    float middle = 0;                     ///< share, median
    bool slow = false, uneven = false;
  };
  struct BadEntry {
    int a, b;
    float share;
  };
  std::map<int, double> leafLacks(std::vector<Row>& rows) const;
  void evaluateRows(std::vector<Row>& rows, int rail, double sigma, double all_bad, double all);
  void raiseEntries(const std::vector<Row>& rows, const std::vector<BadEntry>& bad, int rail,
                    bool whole);
  void noteBadEntries(const std::vector<Row>& rows, const std::vector<BadEntry>& bad, int rail);
  void learnMatrices(const RoundResult& result);
  void learnSpread(const RoundResult& result);
  void learnFailed(const RoundResult& result);

  Isolation::State& state_;
};

}  // namespace muster::validate::isolate
