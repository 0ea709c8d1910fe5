// SPDX-License-Identifier: Apache-2.0
// Where the nodes of a fabric are in its shape.
#pragma once

#include "base/ids.h"
#include "inventory/model/fwd.h"

namespace muster::inventory {

/// The place of each node on the fabric, counted from 0, SU by SU: as its `places` say, else in the
/// order of the inventory. A node that declared places do not name has none; loading an inventory
/// refuses that.
std::map<NodeName, int> placesOn(const Cluster& cluster, const Fabric& fabric);

/// "FABRIC-N" of each node on a rail-optimized fabric, N counted from 1; of a node on several the
/// compute fabric's.
std::map<NodeName, std::string> scalableUnitsOf(const Cluster& cluster);

}  // namespace muster::inventory
