// SPDX-License-Identifier: Apache-2.0
#include "fabric/topology/leaves.h"

#include "fabric/fabric.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"

namespace muster::fabric {

std::map<std::string, std::set<std::string>> leavesOf(const inventory::Cluster& cluster) {
  std::map<std::string, std::set<std::string>> out;
  for (const auto& [name, fabric] : cluster.fabrics) {
    const auto topology = declaredTopology(cluster, fabric);
    if (!topology) continue;
    const auto add = [&](const Port& hca, const Port& other) {
      const auto &here = topology->devices.at(hca.node), &there = topology->devices.at(other.node);
      if (!here.is_switch && there.is_switch)
        out[hca.node.substr(0, hca.node.find(' '))].insert(other.node);
    };
    for (const auto& link : topology->links) {
      add(link.a, link.b);
      add(link.b, link.a);
    }
  }
  return out;
}

}  // namespace muster::fabric
