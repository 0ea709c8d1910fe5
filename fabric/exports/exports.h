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

/// topology.conf for topology/tree.
std::string slurmTree(const Vicinity& top);
/// topology.yaml (Slurm 25.05 and later) with the same tree; with NVLink domains also their blocks.
std::string slurmYaml(const Vicinity& top, const inventory::Fabric& fabric);
/// topology.conf for topology/block: NVLink domains, else the lowest groups. Empty when no group
/// has a node.
std::string slurmBlocks(const Vicinity& top, const inventory::Fabric& fabric);
/// One Node document each, for `kubectl apply --server-side`: network.topology.nvidia.com/leaf,
/// /spine, /core, /accelerator.
std::string kubernetesLabels(const Vicinity& top, const inventory::Fabric& fabric);
/// The RDMA devices of a profile, rail after rail: "mlx5_0".
std::vector<std::string> rdmaDevices(const inventory::Profile& profile,
                                     const inventory::Fabric& fabric);
/// Environment for jobs on nodes of a profile: which HCAs, whether rails may be crossed; on RoCE
/// also traffic class and GID.
std::string ncclEnvironment(const inventory::Profile& profile, const inventory::Fabric& fabric);
/// Text exposition of a comparison, for node_exporter's textfile collector.
std::string toPrometheus(const DiffReport& report);

}  // namespace muster::fabric
