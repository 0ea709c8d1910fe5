// SPDX-License-Identifier: Apache-2.0
// Agents that poll and are refused: their machines run, whatever the gateway's state shows.
// A gateway that knows derives from it.
#pragma once

#include "base/ids.h"

namespace muster::gateway {

class RefusedAgents {
 public:
  virtual ~RefusedAgents() = default;
  /// Within kAgentTimeout an agent of the node polled in Disk mode with a key of an earlier
  /// installation (adr/0105).
  virtual bool isRefused(const NodeName& node) const = 0;
};

}  // namespace muster::gateway
