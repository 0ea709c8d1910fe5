// SPDX-License-Identifier: Apache-2.0
// What two fabrics of one inventory must not have in common.
#pragma once

#include "inventory/model/fwd.h"

namespace muster {
class Diagnostics;
}

namespace muster::fabric {

/// Adds an error for every two managed fabrics with a switch, a host's HCA or a storage server's in
/// common, and for every HCA that is cabled to another fabric than its rail says. Pure. A fabric
/// that cannot be expanded is left out: its own phase says why.
void checkApart(const inventory::Cluster& cluster, Diagnostics& diagnostics);

}  // namespace muster::fabric
