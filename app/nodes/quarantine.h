// SPDX-License-Identifier: Apache-2.0
// quarantine: nodes that a person, or the monitor, keeps out of their pools.
#pragma once

#include "app/site/options.h"
#include "lifecycle/model/quarantine.h"

#include <map>
#include <string>
#include <vector>

namespace muster::app {

Result<std::map<NodeName, lifecycle::QuarantineEntry>> quarantinedNodes(const Options& options);

struct QuarantinedNode {
  NodeName node;
  bool is_new = false;  ///< else it was in quarantine already
  std::string reason;   ///< that holds: the earlier one when it was
};
/// Effect: a reason that does not hold, because the node has one, is in the log. The monitor, or
/// apply, drains the nodes. Errors: NotFound (not in the inventory; none is added)
Result<std::vector<QuarantinedNode>> addToQuarantine(const Options& options,
                                                     const std::string& nodes,
                                                     const std::string& reason);

/// Effect: its certificate is revoked: what was proven before the repair says nothing of the node
/// as it is now. Errors: NotFound (it is not in quarantine), InvalidInput (no reason)
Result<void> removeFromQuarantine(const Options& options, const NodeName& node,
                                  const std::string& reason);

}  // namespace muster::app
