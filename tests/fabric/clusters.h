// SPDX-License-Identifier: Apache-2.0
// Small declared fabrics for the tests of fabric/ and its neighbours.
#pragma once

#include "base/ids.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fwd.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"

#include <algorithm>

namespace muster::fabric::test {

/// `nodes` nodes gpu001… on a rail-optimized fabric called "ib".
inline inventory::Cluster railCluster(int nodes, int sus = 1, int nodes_per_su = 4, int rails = 2,
                                      int spines_per_su = 2) {
  inventory::Cluster cluster;
  cluster.name = "test";
  inventory::Profile profile;
  profile.name = "gpu-node";
  profile.fabric = "ib";
  cluster.profiles["gpu-node"] = profile;
  inventory::Fabric fabric;
  fabric.name = "ib";
  fabric.sus = sus;
  fabric.nodes_per_su = nodes_per_su;
  fabric.rails = rails;
  fabric.spines_per_su = spines_per_su;
  fabric.switch_ports = 16;
  fabric.subnet_managers = {"controller"};
  inventory::Partition all;
  all.name = "default";
  all.pkey = 0x7fff;
  all.ipoib = true;
  all.limited_members = {"ALL"};
  all.full_members = {"SELF"};
  inventory::Partition batch;
  batch.name = "batch";
  batch.pkey = 0x0010;
  batch.full_members = {"gpu[001-002]"};
  fabric.partitions = {all, batch};
  cluster.fabrics["ib"] = fabric;
  for (int i = 1; i <= nodes; ++i) {
    inventory::Node node;
    node.name = NodeName(fmt::format("gpu{:03}", i));
    node.profile = "gpu-node";
    cluster.nodes.push_back(node);
  }
  return cluster;
}

/// A SuperPOD's scalable unit: 8 HCAs a node, 8 leaves, 4 spines, 256 cables between switches. Room
/// for 32 nodes, or 31 and the controller.
inline inventory::Cluster scalableUnit(int nodes, std::vector<std::string> subnet_managers) {
  auto cluster = railCluster(nodes, 1, 32, 8, 4);
  auto& fabric = cluster.fabrics["ib"];
  fabric.switch_ports = 64;
  fabric.uplinks_per_leaf_spine = 8;
  fabric.subnet_managers = std::move(subnet_managers);
  return cluster;
}

/// 16 pods of 32 leaves and 32 spines, 256 cores: room for 2,048 nodes of 8 HCAs on 49,152 cables.
inline inventory::Cluster threeLevels(int nodes) {
  auto cluster = railCluster(nodes, 16, 32, 8, 32);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::FatTree;
  fabric.switch_ports = 64;
  fabric.leaves_per_su = 32;
  fabric.cores = 256;
  fabric.uplinks_per_spine_core = 4;
  fabric.subnet_managers.clear();
  return cluster;
}

/// Eight nodes on two sets of four leaves each, switches as MLNX-OS names them.
inline inventory::Cluster factoryNamedCluster() {
  auto cluster = railCluster(8, 1, 8, 4, 2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.shape = inventory::FabricShape::Explicit;
  fabric.subnet_managers.clear();
  const auto leaf = [](int number) {
    return fmt::format("MF0;ib-hall-2-r{:02}:MQM9700/U1", number);
  };
  for (int node = 1; node <= 8; ++node)
    for (int rail = 0; rail < 4; ++rail)
      fabric.cables.push_back({.from_node = fmt::format("gpu{:03}", node),
                               .from_port = rail + 1,
                               .to_node = leaf((node > 4 ? 4 : 0) + rail),
                               .to_port = node});
  for (int number = 0; number < 8; ++number)
    fabric.cables.push_back({.from_node = leaf(number),
                             .from_port = 16,
                             .to_node = "MF0;ib-spine:MQM9700/U1",
                             .to_port = number + 1});
  return cluster;
}

/// Storage on one spine, UFM on another, both on a third: ports that sites do cable there.
inline std::vector<inventory::FabricCable> portsOnSpines() {
  using inventory::AttachedRole;
  return {{.from_node = "store1 mlx5_0",
           .to_node = "spine-001",
           .to_port = 15,
           .role = AttachedRole::Storage},
          {.from_node = "ufm1 mlx5_0",
           .to_node = "spine-002",
           .to_port = 15,
           .role = AttachedRole::Ufm},
          {.from_node = "gateway1 mlx5_0",
           .to_node = "spine-002",
           .to_port = 16,
           .role = AttachedRole::Gateway}};
}

/// railCluster with a storage fabric beside it: each node's mlx5_8 on leaves "st-leaf-…".
inline inventory::Cluster twoFabrics(int nodes) {
  auto cluster = railCluster(nodes);
  inventory::Fabric storage;
  storage.name = "storage";
  storage.purpose = inventory::FabricPurpose::Storage;
  storage.switch_prefix = "st-";
  storage.nodes_per_su = 4;
  storage.switch_ports = 16;
  storage.link = "4xEDR";
  storage.controller_hca = "mlx5_1";
  storage.subnet_managers = {"controller"};
  storage.routing = "minhop";  // one switch is no tree
  cluster.fabrics["storage"] = storage;
  auto& profile = cluster.profiles["gpu-node"];
  profile.other_fabrics = {"storage"};
  profile.rails = {
      {"mlx5_0", {}, {}, "ib"}, {"mlx5_1", {}, {}, "ib"}, {"mlx5_8", {}, {}, "storage"}};
  return cluster;
}

/// Four nodes, two on the compute fabric "ib" and two on a compute fabric of their own, "ib-b".
inline inventory::Cluster twoHalls() {
  auto cluster = railCluster(4);
  auto& other = cluster.fabrics["ib-b"];
  other = cluster.fabrics["ib"];
  other.name = "ib-b";
  other.switch_prefix = "b-";
  other.controller_hca = "mlx5_1";
  cluster.profiles["gpu-b"] = cluster.profiles["gpu-node"];
  cluster.profiles["gpu-b"].name = "gpu-b";
  cluster.profiles["gpu-b"].fabric = "ib-b";
  for (std::size_t i = 2; i < cluster.nodes.size(); ++i) cluster.nodes[i].profile = "gpu-b";
  cluster.fabrics["ib"].partitions.resize(1);
  other.partitions.resize(1);
  return cluster;
}

inline Topology declared(const inventory::Cluster& cluster) {
  return declaredTopology(cluster, cluster.fabrics.at("ib")).value();
}

inline Link* findLink(Topology& topology, const Port& end) {
  auto at = std::find_if(topology.links.begin(), topology.links.end(),
                         [&](const Link& link) { return link.a == end || link.b == end; });
  return at == topology.links.end() ? nullptr : &*at;
}

inline void unplug(Topology& topology, const Port& end) {
  std::erase_if(topology.links, [&](const Link& link) { return link.a == end || link.b == end; });
}

inline void plug(Topology& topology, Port one, Port other, std::string width_speed = "4xHDR") {
  if (other < one) std::swap(one, other);
  topology.links.push_back({std::move(one), std::move(other), std::move(width_speed)});
  std::sort(topology.links.begin(), topology.links.end());
}

inline void rename(Topology& topology, const std::string& from, const std::string& to) {
  auto device = topology.devices.extract(from);
  device.key() = device.mapped().name = to;
  topology.devices.insert(std::move(device));
  for (auto& link : topology.links) {
    for (auto* end : {&link.a, &link.b})
      if (end->node == from) end->node = to;
    if (link.b < link.a) std::swap(link.a, link.b);
  }
  std::sort(topology.links.begin(), topology.links.end());
}

}  // namespace muster::fabric::test
