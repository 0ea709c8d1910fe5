// SPDX-License-Identifier: Apache-2.0
// What holds a pool back: nodes that a person has drained in their scheduler, and overriding such a
// drain for a reason; open circuit breakers.
#pragma once

#include "app/site/options.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "monitor/breakers.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::app {

struct PoolHold {
  NodeName node;
  std::string hold;           ///< the person's words, who, since when
  WallTime seen_at{};         ///< when the scheduler said so last
  bool overridden = false;    ///< muster may disturb the node all the same
  std::string overridden_by;  ///< "anna@ctl1: PSU first", or empty
};

struct PoolHolds {
  std::vector<PoolHold> holds;
  std::vector<NodeName> unread;  ///< members of a pool whose scheduler could not be asked so far,
                                 ///< or did not answer the last time
};
/// As the store knows it, in the order of the inventory. Errors: NotFound (nothing was done here
/// yet)
Result<PoolHolds> poolHolds(const Options& options);

/// From now on muster may disturb these nodes although a person has drained them; they join again
/// when the person resumes them. An override ends with the drain that it was given for.
/// Effect: journaled. Errors: NotFound (a node is not in the inventory, or no person holds it;
/// nothing is overridden)
Result<std::vector<PoolHold>> overridePoolHolds(const Options& options, const std::string& nodes,
                                                const std::string& reason);

/// Closes the pools' circuit breakers: a person has looked. Answers those that were open. Errors:
/// InvalidInput (no reason)
Result<monitor::BreakerStates> acknowledgeBreakers(const Options& options,
                                                   const std::string& reason);

}  // namespace muster::app
