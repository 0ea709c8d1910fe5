// SPDX-License-Identifier: Apache-2.0
#include "app/plans/rollout_outcome.h"

#include <algorithm>

namespace muster::app {

using lifecycle::RolloutState;

std::size_t RolloutStatus::count(lifecycle::RolloutNodeState state) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      progress, [state](const auto& each) { return each.second.state == state; }));
}

RolloutStatus statusOf(const lifecycle::RolloutRecord& book) {
  return {book.rollout(), book.progress(), {}, {}};
}

RolloutOutcome outcomeOfState(const lifecycle::Rollout& rollout) {
  switch (rollout.state) {
    case RolloutState::Done:
    case RolloutState::RolledBack:
      return RolloutOutcome::Complete;
    case RolloutState::Halted:
      return RolloutOutcome::Halted;
    case RolloutState::Running:
    case RolloutState::Paused:
    case RolloutState::Aborted:
      break;
  }
  return RolloutOutcome::Incomplete;
}

RolloutOutcome outcomeOf(const RolloutStatus& status) {
  using lifecycle::RolloutNodeState;
  const auto state = status.rollout.state;
  const bool left_out =
      (state == RolloutState::RolledBack && status.count(RolloutNodeState::RollbackFailed) > 0) ||
      (state == RolloutState::Done &&
       (status.count(RolloutNodeState::Failed) > 0 || status.count(RolloutNodeState::Skipped) > 0));
  return left_out ? RolloutOutcome::Incomplete : outcomeOfState(status.rollout);
}

}  // namespace muster::app
