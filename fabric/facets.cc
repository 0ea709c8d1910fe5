// SPDX-License-Identifier: Apache-2.0
#include "fabric/facets.h"

#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"

#include <algorithm>

namespace muster::fabric {

std::string facetSuffix(const inventory::Cluster& cluster, const inventory::Fabric& fabric) {
  return inventory::infiniBandFabrics(cluster).size() > 1 ? "." + fabric.name : std::string();
}

std::string_view baseOf(std::string_view facet) {
  const auto family = facet.find('.');
  if (family == std::string_view::npos) return facet;
  return facet.substr(0, std::min(facet.find('.', family + 1), facet.size()));
}

}  // namespace muster::fabric
