// SPDX-License-Identifier: Apache-2.0
// Names of the facets of InfiniBand fabrics: plain where there is one, with the fabric's name
// behind where there are several ("fabric.sm.storage").
#pragma once

#include "inventory/model/fwd.h"

#include <string>
#include <string_view>

namespace muster::fabric {

inline constexpr std::string_view kSm = "fabric.sm", kPartitions = "fabric.partitions",
                                  kLinks = "fabric.links", kPorts = "fabric.ports",
                                  kStandby = "fabric.standby";

/// What comes behind the facets of this fabric: "", or ".storage".
std::string facetSuffix(const inventory::Cluster& cluster, const inventory::Fabric& fabric);
/// "fabric.sm.storage" → "fabric.sm"
std::string_view baseOf(std::string_view facet);

}  // namespace muster::fabric
