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
  void learnMatrices(const RoundResult& result);
  void learnSpread(const RoundResult& result);
  void learnFailed(const RoundResult& result);

  Isolation::State& state_;
};

}  // namespace muster::validate::isolate
