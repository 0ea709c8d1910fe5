// SPDX-License-Identifier: Apache-2.0
// What an agent has told its controller: a poll that would say the same again says only that. An
// agent that has nothing to do lists sixteen tasks and all its probes every twenty seconds
// otherwise, and a controller reads that of ten thousand.
#pragma once

#include "wire/messages.h"

#include <optional>

namespace muster::wire {

class ToldPoll {
 public:
  /// The poll as it goes out: short when all of `poll` is known.
  PollRequest shortened(const PollRequest& poll) const;
  /// `poll`, as it was before it was shortened, has this answer.
  void answered(const PollRequest& poll, const PollResponse& response);
  /// Nobody knows what has arrived.
  void forget() { told_.reset(); }

 private:
  std::optional<PollRequest> told_;
};

}  // namespace muster::wire
