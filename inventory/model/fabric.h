// SPDX-License-Identifier: Apache-2.0
// A fabric as declared: its shape, its cables, what is excused from the check, its subnet managers
// and partitions.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

struct Partition {
  std::string name;
  std::uint16_t pkey = 0;  ///< 15 bits
  bool ipoib = false;
  std::vector<std::string> full_members;  ///< node hostlists; "ALL" and "SELF" as OpenSM knows them
  std::vector<std::string> limited_members;
};

/// What a fabric is for: collectives of jobs run on the compute fabric alone.
enum class FabricPurpose { Compute, Storage };
enum class FabricShape { RailOptimized, Explicit, FatTree };
/// What hangs at a cable's `from`, when it is neither a node nor a switch.
enum class AttachedRole { None, Storage, Ufm, Gateway };
struct FabricCable {
  std::string from_node;
  int from_port = 1;
  std::string to_node;
  int to_port = 1;
  AttachedRole role = AttachedRole::None;
  std::string link;  ///< empty: as the fabric
  SourceRef where;
};
/// Where switches stand and what runs on them.
struct FabricSwitches {
  std::vector<std::string> names;  ///< hostlist, expanded
  std::string rack;
  int unit = 0;  ///< of the first; each further one stands `units_apart` higher
  int units_apart = 1;
  std::string firmware;  ///< that must run on them, "31.2012.1024"; empty: as the fabric says
  SourceRef where = {};
};
/// A device, or one port of it, that is known to be out: its deviations are told but do not count.
struct FabricExclusion {
  std::string device;
  int port = 0;  ///< 0: the whole device
  std::string reason;
  SourceRef where = {};
};
/// How lossless traffic is marked, on hosts, switches and in NCCL alike. Present: an Ethernet
/// fabric (RoCE v2).
struct Roce {
  int dscp = 26;      ///< of RDMA traffic
  int priority = 3;   ///< that it maps to; PFC is on for this one only
  int cnp_dscp = 48;  ///< of congestion notifications
  int cnp_priority = 6;
  int mtu = 9000;         ///< of interfaces, in bytes
  int gid_index = 3;      ///< of RoCE v2 over IPv4 on mlx5
  int ecn_min_kib = 150;  ///< marking begins
  int ecn_max_kib = 1500;
  int ecn_percent = 100;                              ///< marked at the maximum
  int trafficClass() const { return dscp << 2 | 2; }  ///< as NCCL_IB_TC: DSCP and ECN-capable
};
/// Nodes whose GPUs share one NVLink fabric (NVL72): one IMEX domain.
struct NvlinkDomain {
  std::string name;
  std::vector<std::string> nodes;  ///< expanded
};
struct Fabric {
  std::string name;  ///< "infiniband"
  FabricPurpose purpose = FabricPurpose::Compute;
  FabricShape shape = FabricShape::RailOptimized;
  int sus = 1;  ///< scalable units; pods of a three-level fat tree
  int nodes_per_su = 32;
  int rails = 1;
  int leaves_per_su = 1;    ///< for FatTree; a rail-optimized SU has one a rail
  int leaf_down_ports = 0;  ///< for FatTree; 0: half of the switch
  int spines_per_su = 1;    ///< two levels: spines = sus × spines_per_su, each on every leaf; three
                            ///< levels: on the leaves of its SU
  int uplinks_per_leaf_spine = 1;
  int cores = 0;  ///< 0: two levels. Else spine k of every SU goes to every core of plane k
  int uplinks_per_spine_core = 1;
  int switch_ports = 64;
  std::string link = "4xHDR";  ///< width and speed of every cable, ibnetdiscover's spelling
  /// Of the cables that a shape makes, class by class; empty: as `link`.
  std::string link_node_leaf, link_leaf_spine, link_spine_core;
  const std::string& nodeLink() const { return link_node_leaf.empty() ? link : link_node_leaf; }
  const std::string& leafSpineLink() const {
    return link_leaf_spine.empty() ? link : link_leaf_spine;
  }
  const std::string& spineCoreLink() const {
    return link_spine_core.empty() ? link : link_spine_core;
  }
  std::vector<std::string> places;  ///< which node has which place of the shape, SU by SU; "":
                                    ///< nobody; empty: in the order of the inventory
  std::vector<FabricCable>
      cables;  ///< for Explicit; with another shape, what it does not know: storage, UFM, gateways
  std::string topology;  ///< for Explicit: ibnetdiscover's text of what should be there
  std::vector<FabricSwitches> switches;
  std::string switch_prefix;    ///< before the names that a shape gives: "st-" makes st-leaf-su1-r0
  std::string switch_firmware;  ///< of all InfiniBand switches, "31.2012.1024"; empty: not compared
  std::vector<FabricExclusion> exclude;
  std::string routing = "ftree";
  std::vector<std::string> subnet_managers;  ///< nodes, or "controller"
  std::string controller_hca = "mlx5_0";     ///< the controller's own on this fabric
  std::vector<Partition> partitions;
  std::optional<Roce> roce;
  std::vector<NvlinkDomain> nvlink_domains;
  SourceRef where;
};

}  // namespace muster::inventory
