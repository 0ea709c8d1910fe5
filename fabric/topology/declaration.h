// SPDX-License-Identifier: Apache-2.0
// Whether the fabrics of an inventory can be built as they are declared: what `inventory check`
// says of them, by the function that `fabric plan` and the phase expand them with.
#pragma once

#include "inventory/model/fwd.h"

namespace muster {
class Diagnostics;
}

namespace muster::fabric {

/// Expands every managed fabric (declaredTopology) and adds an error for each that cannot be, for
/// every two of them with a switch, a host's HCA or a storage server's in common, and for every HCA
/// that is cabled to another fabric than its rail says. Of the shape explicit it refuses islands
/// that no cable connects (with RoCE: a warning), nodes without a cable, cables with both ends at
/// one device, and of a topology_file those whose ends say different speeds; the few that are
/// slower than the others there are a warning. A warning for each exclusion and each row of
/// `switches` that names no device of the fabric, at that row. Pure.
void checkDeclarations(const inventory::Cluster& cluster, Diagnostics& diagnostics);

}  // namespace muster::fabric
