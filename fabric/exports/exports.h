// SPDX-License-Identifier: Apache-2.0
// What schedulers, NCCL and monitoring want to know of the fabric, from the one declaration. Pure.
#pragma once

#include "inventory/model/fwd.h"
#include "inventory/model/node.h"

#include <string>
#include <vector>

namespace muster::fabric {

struct DiffReport;
struct Topology;

/// Nodes that are equally near to each other, and such groups in turn. Names are legal for Slurm
/// and as the value of a Kubernetes label; a name that is not, or is too long, ends in a digest.
struct Vicinity {
  std::string name;
  std::vector<std::string> nodes;  ///< of the lowest level only
  std::vector<Vicinity> children;
};
/// A rail-optimized fabric: SU by SU (a node is on every leaf of its SU, so its leaves are no
/// tree). Others: by the leaves that a node is on, and below cores by SU. The top is the whole
/// fabric; every node is in exactly one group.
Vicinity vicinityOf(const inventory::Cluster& cluster, const inventory::Fabric& fabric,
                    const Topology& declared);

/// A fabric with its topology.
struct ExpandedFabric {
  const inventory::Fabric* fabric = nullptr;
  const Topology* declared = nullptr;
};
/// The same of several compute fabrics: their groups have the fabric's name before them, so that no
/// two have one name.
std::vector<Vicinity> vicinitiesOf(const inventory::Cluster& cluster,
                                   const std::vector<ExpandedFabric>& fabrics);

/// topology.conf for topology/tree; several fabrics are as many trees.
std::string slurmTree(const Vicinity& top);
std::string slurmTree(const std::vector<Vicinity>& tops);
/// topology.yaml (Slurm 25.05 and later) with the same tree; with NVLink domains also their blocks.
std::string slurmYaml(const Vicinity& top, const inventory::Fabric& fabric);
std::string slurmYaml(const std::vector<Vicinity>& tops,
                      const std::vector<const inventory::Fabric*>& fabrics);
/// topology.conf for topology/block: NVLink domains, else the lowest groups. Empty when no group
/// has a node.
std::string slurmBlocks(const Vicinity& top, const inventory::Fabric& fabric);
std::string slurmBlocks(const std::vector<Vicinity>& tops,
                        const std::vector<const inventory::Fabric*>& fabrics);
/// One Node document each, for `kubectl apply --server-side`: network.topology.nvidia.com/leaf,
/// /spine, /core, /accelerator.
std::string kubernetesLabels(const Vicinity& top, const inventory::Fabric& fabric);
/// The RDMA devices of a profile on this fabric, rail after rail: "mlx5_0".
std::vector<std::string> rdmaDevices(const inventory::Profile& profile,
                                     const inventory::Fabric& fabric);
/// Environment for jobs on nodes of a profile: which HCAs, whether rails may be crossed; on RoCE
/// also traffic class and GID.
std::string ncclEnvironment(const inventory::Profile& profile, const inventory::Fabric& fabric);
/// Text exposition of a comparison, for node_exporter's textfile collector.
std::string toPrometheus(const DiffReport& report);

}  // namespace muster::fabric
