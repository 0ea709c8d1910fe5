// SPDX-License-Identifier: Apache-2.0
// What pools say of nodes while a rollout runs: whom its window counts as out, and which changed
// nodes have left their pools.
#pragma once

#include "lifecycle/rollout/course.h"

namespace muster::lifecycle {

class PoolWatch {
 public:
  explicit PoolWatch(RolloutCourse& course) : course_(course) {}

  /// Is it in its pool by the facts? A node without a pool counts as in.
  bool works(const NodeName& node, const FactSet& facts) const;
  /// Does it belong into a pool that has not said where it is?
  bool poolIsUnknown(const NodeName& node, const FactSet& facts) const;
  /// By the stored facts.
  void updateWindow(const NodeName& node);
  /// Asks the pools about every node whose group has a ceiling, once in a while. Somebody else may
  /// have taken nodes out, or lost them.
  Async<void> poll();
  /// After a soak: a node that passed its gates and then left its pool speaks against the change.
  /// Answers a text for each. Errors: of the store
  Async<std::vector<std::string>> changedNodesThatLeft();

 private:
  Task<void> pollNode(NodeName node);

  RolloutCourse& course_;
  std::optional<std::chrono::steady_clock::time_point> polled_at_;
  bool polling_ = false;
};

}  // namespace muster::lifecycle
