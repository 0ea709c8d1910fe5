// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/fabric_positions.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>

namespace muster::inventory {

std::map<NodeName, int> placesOn(const Cluster& cluster, const Fabric& fabric) {
  std::map<std::string_view, int> declared;
  for (std::size_t i = 0; i < fabric.places.size(); ++i)
    if (!fabric.places[i].empty()) declared.emplace(fabric.places[i], static_cast<int>(i));
  std::map<NodeName, int> places;
  int order = 0;
  for (const Node& node : cluster.nodes) {
    const auto profile = cluster.profiles.find(node.profile);
    if (profile == cluster.profiles.end() || !isOn(profile->second, fabric.name)) continue;
    if (fabric.places.empty())
      places.emplace(node.name, order++);
    else if (const auto found = declared.find(node.name.str()); found != declared.end())
      places.emplace(node.name, found->second);
  }
  return places;
}

std::map<NodeName, std::string> scalableUnitsOf(const Cluster& cluster) {
  std::map<NodeName, std::string> units;
  for (const Fabric* fabric : managedFabrics(cluster)) {  // the compute fabric's word is the first
    if (fabric->shape != FabricShape::RailOptimized || fabric->nodes_per_su < 1) continue;
    for (const auto& [node, place] : placesOn(cluster, *fabric))
      units.emplace(node, fmt::format("{}-{}", fabric->name, place / fabric->nodes_per_su + 1));
  }
  return units;
}

}  // namespace muster::inventory
