// SPDX-License-Identifier: Apache-2.0
// How a rollout has ended, for who asked for it.
#pragma once

#include "lifecycle/rollout/record.h"

namespace muster::app {

/// How a rollout has ended, or why it does not go on.
enum class RolloutOutcome {
  Complete,   ///< done, or rolled back, for every node
  Halted,     ///< a gate failed
  Incomplete  ///< paused, aborted, under way, or some nodes were left out
};
RolloutOutcome outcomeOf(const lifecycle::RolloutRecord& book);
/// The same by its state alone: a node that was left out does not count.
RolloutOutcome outcomeOfState(const lifecycle::RolloutRecord& book);

}  // namespace muster::app
