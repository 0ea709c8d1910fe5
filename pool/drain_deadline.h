// SPDX-License-Identifier: Apache-2.0
// When a drain has lasted too long. What then becomes of it says the pool's policy (phase.cc); the
// keys are in inventory/schema/tables_pools.cc.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "inventory/model/pools.h"
#include "pool/scheduler.h"

#include <chrono>
#include <map>

namespace muster::pool {

/// What cannot be undone is not done on the wall clock's word alone: it may have been set. What
/// this process has seen of the drain counts by the steady clock, and what was before it is
/// believed only after some minutes, in which a clock that is wrong is usually corrected.
class DrainDeadline {
 public:
  /// `clock` is borrowed and outlives this object.
  explicit DrainDeadline(Clock& clock) : clock_(clock) {}
  /// Whether the node's drain is past the policy's deadline. One that has none, or whose beginning
  /// the scheduler does not tell, never is.
  bool isOver(const NodeName& node, const Member& member, const inventory::DrainPolicy& policy);

 private:
  /// A drain as this process first saw it.
  struct Watched {
    WallTime since;
    std::chrono::steady_clock::time_point first;
    std::chrono::nanoseconds before;  ///< had it lasted by then, by the wall clock
  };
  bool isSurelyOver(const NodeName& node, WallTime since, std::chrono::minutes limit);

  Clock& clock_;
  std::map<NodeName, Watched> watched_;  // bounded by the nodes
};

}  // namespace muster::pool
