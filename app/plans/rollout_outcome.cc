// SPDX-License-Identifier: Apache-2.0
#include "app/plans/rollout_outcome.h"

namespace muster::app {

using lifecycle::RolloutRecord;
using lifecycle::RolloutState;

RolloutOutcome outcomeOfState(const RolloutRecord& book) {
  switch (book.rollout().state) {
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

RolloutOutcome outcomeOf(const RolloutRecord& book) {
  using lifecycle::RolloutNodeState;
  const auto state = book.rollout().state;
  const bool left_out =
      (state == RolloutState::RolledBack && book.count(RolloutNodeState::RollbackFailed) > 0) ||
      (state == RolloutState::Done &&
       (book.count(RolloutNodeState::Failed) > 0 || book.count(RolloutNodeState::Skipped) > 0));
  return left_out ? RolloutOutcome::Incomplete : outcomeOfState(book);
}

}  // namespace muster::app
