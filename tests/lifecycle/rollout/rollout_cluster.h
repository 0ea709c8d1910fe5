// SPDX-License-Identifier: Apache-2.0
// A cluster of GPU nodes in racks, for the pure parts of a rollout.
#pragma once

#include "base/ids.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fwd.h"
#include "inventory/model/profile.h"

namespace muster::lifecycle {

inline inventory::Cluster clusterOf(int nodes, int per_rack) {
  inventory::Cluster cluster;
  cluster.digest = "declared";
  cluster.drivers["nvidia-570"] = {.name = "nvidia-570", .packages = {"nvidia=570"}};
  cluster.profiles["gpu"] = {
      .name = "gpu", .image = "noble", .drivers = {"nvidia-570"}, .pool = "batch", .fabric = "ib"};
  cluster.fabrics["ib"] = {.name = "ib", .nodes_per_su = 8};
  for (int i = 0; i < nodes; ++i) {
    inventory::Node node;
    node.name = NodeName(fmt::format("n{:04}", i));
    node.profile = "gpu";
    node.rack = fmt::format("r{:02}", i / per_rack);
    cluster.nodes.push_back(node);
  }
  return cluster;
}

inline std::vector<NodeName> namesOf(const inventory::Cluster& cluster) {
  std::vector<NodeName> out;
  for (const auto& node : cluster.nodes) out.push_back(node.name);
  return out;
}

}  // namespace muster::lifecycle
