// SPDX-License-Identifier: Apache-2.0
// Which round comes next, and who is in it. Internal.
#pragma once

#include "validate/isolate/state.h"

namespace muster::validate::isolate {

class RoundPlanner {
 public:
  explicit RoundPlanner(Isolation::State& state) : state_(state) {}

  /// Nullopt when all is decided, or nothing more can be.
  std::optional<Round> plan();

 private:
  bool hasPending() const;    ///< something has not been tested again yet
  bool hasUndecided() const;  ///< … or not often enough
  bool needsCubes() const;
  bool needsWatch() const;  ///< somebody was tested too seldom, or is watched
  bool hasCulprit() const;
  bool isNoMeasure() const;
  Round matching();
  Round confirm();
  Round grid();
  Round ladder();
  Round cube();
  Round watch();
  Round exchangeAgain();
  std::vector<int> shuffled(std::vector<int> nodes);
  void addControls(Round& made, const std::vector<int>& free);
  Round allPairs(std::vector<std::vector<int>> groups, std::string what);
  void addRiders(Round& made, const Round& riders);
  void addSuspects(Round& made, std::vector<int>& free);
  void addPartners(Round& made, std::vector<int>& free, const std::vector<int>& nodes);
  void addPaths(Round& made, std::vector<int>& free);
  std::vector<int> withOthers();
  void addCables(Round& made, std::vector<int>& free);

  Isolation::State& state_;
};

}  // namespace muster::validate::isolate
