// SPDX-License-Identifier: Apache-2.0
// Shouts when an action takes longer than its kind usually does: an event and a finding, once an
// action, while it is still under way.
#pragma once

#include "lifecycle/executor/duration_estimate.h"
#include "lifecycle/executor/engine.h"

#include <set>
#include <string>

namespace muster::lifecycle {

inline constexpr std::chrono::seconds kStallCheckInterval{15};
inline constexpr std::chrono::minutes kEstimatesTtl{30};  ///< then the journal has more to say

class StallWatch {
 public:
  StallWatch(const inventory::Cluster& cluster, Store& store, Clock& clock, EventSink sink,
             ConsoleLines console = {})
      : cluster_(cluster),
        store_(store),
        clock_(clock),
        sink_(std::move(sink)),
        console_(std::move(console)) {}

  /// Looks for ever; ends by cancellation. Run it beside the engine.
  Task<void> run();
  /// One look at the open intents. Errors: of the store
  Result<void> check();

 private:
  Result<DurationEstimate> estimateFor(const Action& action);
  Result<void> raiseFinding(const Intent& intent, const DurationEstimate& estimate);

  const inventory::Cluster& cluster_;
  Store& store_;
  Clock& clock_;
  const EventSink sink_;
  const ConsoleLines console_;
  KnownDurations durations_{kEstimatesTtl};
  std::set<std::string> reported_;  ///< intents
};

}  // namespace muster::lifecycle
