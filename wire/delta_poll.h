// SPDX-License-Identifier: Apache-2.0
// What an agent has reported to its controller: a poll that would repeat it names that poll instead
// (`unchanged_since`). An agent that has nothing to do lists sixteen tasks and all its probes every
// twenty seconds otherwise, and a controller reads that of ten thousand.
//
// Only for a controller whose answer had `supports_delta`. Before 2026-11 the two were `as_before`
// and `takes_short`: to a controller that is older an agent sends whole polls, as does an older
// agent to a newer controller, which still reads `as_before` of one that it has just succeeded.
#pragma once

#include "wire/messages.h"

#include <optional>

namespace muster::wire {

class DeltaPoll {
 public:
  /// The poll as it is sent: without what the controller knows, when it knows all of it.
  PollRequest deltaOf(const PollRequest& poll) const;
  /// `poll`, as it was given to `deltaOf`, has this answer.
  void acknowledged(const PollRequest& poll, const PollResponse& response);
  /// What has arrived is not known: the next poll is whole.
  void forget() { reported_.reset(); }

 private:
  std::optional<PollRequest> reported_;
};

}  // namespace muster::wire
