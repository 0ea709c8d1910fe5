// SPDX-License-Identifier: Apache-2.0
// Agents that call and are not listened to: their machines run, whatever the gateway's state says.
// A gateway that knows derives from it.
#pragma once

#include "base/ids.h"

namespace muster::gateway {

class RefusedAgents {
 public:
  virtual ~RefusedAgents() = default;
  /// Within kSilentAfter an agent of the node called in Disk mode with a key that is of an earlier
  /// life (adr/0105).
  virtual bool isRefused(const NodeName& node) const = 0;
};

}  // namespace muster::gateway
