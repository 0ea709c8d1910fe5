// SPDX-License-Identifier: Apache-2.0
// Waves: which nodes come first, and how many at a time a gate stands between.
#pragma once

#include "inventory/model/node.h"
#include "inventory/parse/change.h"

#include <string>
#include <vector>

namespace muster::lifecycle {

struct Wave {
  std::string name;  ///< "canary", "to 10 %"
  std::vector<NodeName> nodes;
};

/// Pure. Every node once. Canaries come from as many racks and profiles as can be, so that they
/// stand for the others; a later wave goes on until its share of all nodes, canaries included, is
/// reached. Waves that would be empty are left out; the last one takes all that is left.
std::vector<Wave> makeWaves(const inventory::Cluster& cluster, std::vector<NodeName> nodes,
                            const inventory::RolloutPolicy& policy);

}  // namespace muster::lifecycle
