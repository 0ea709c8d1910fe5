// SPDX-License-Identifier: Apache-2.0
// How far a rollout is, as a value that whoever asks gets from this process or from a server, and
// how it has ended.
#pragma once

#include "lifecycle/rollout/record.h"

#include <map>
#include <string>
#include <vector>

namespace muster::app {

struct RolloutStatus {
  lifecycle::Rollout rollout;
  std::map<NodeName, lifecycle::NodeProgress> progress;
  lifecycle::GivenOrder order;      ///< what its runner was told and has not done yet
  std::vector<std::string> others;  ///< ids of other rollouts over the inventory, oldest first
  std::size_t count(lifecycle::RolloutNodeState state) const;
};
RolloutStatus statusOf(const lifecycle::RolloutRecord& book);

/// How a rollout has ended, or why it does not go on.
enum class RolloutOutcome {
  Complete,   ///< done, or rolled back, for every node
  Halted,     ///< a gate failed
  Incomplete  ///< paused, aborted, under way, or some nodes were left out
};
RolloutOutcome outcomeOf(const RolloutStatus& status);
/// The same by its state alone: a node that was left out does not count.
RolloutOutcome outcomeOfState(const lifecycle::Rollout& rollout);

}  // namespace muster::app
