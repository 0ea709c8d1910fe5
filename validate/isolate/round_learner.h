// SPDX-License-Identifier: Apache-2.0
// What a round says: about NICs by its pairs; what collectives and ways say is asked of their own
// classes. Internal.
#pragma once

#include "validate/isolate/test_history.h"

namespace muster::validate::isolate {

class RoundLearner {
 public:
  explicit RoundLearner(Isolation::State& state) : state_(state) {}

  /// The answer to the round that is current; it is over then.
  void learn(const RoundResult& result);

 private:
  void learnPairs(const RoundResult& result);
  void learnRepetition(PathSuspect& path, double share) const;
  void findDeadRails();
  void classify();
  void decide();
  void watch();
  void askNear(const TestHistory& history);
  Background lowTests() const;
  static int provingTests(const TestHistory& history);

  Isolation::State& state_;
  int proving_tests_ = 0;  ///< bad ones, with the first, that accuse a pair
};

}  // namespace muster::validate::isolate
