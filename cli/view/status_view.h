// SPDX-License-Identifier: Apache-2.0
// The state of the nodes: a summary, then a row a node, or a row for all nodes that are alike.
#pragma once

#include "app/nodes/status.h"

#include <string>
#include <vector>

namespace muster::cli {

enum class StatusDetail {
  Auto,  ///< rows of nodes as long as they fit a few screens, otherwise rows of equal nodes
  Nodes  ///< a row a node, however many
};

std::string statusText(const std::vector<app::NodeStatus>& nodes, WallTime now,
                       StatusDetail detail);
std::string statusJson(const std::vector<app::NodeStatus>& nodes);

}  // namespace muster::cli
