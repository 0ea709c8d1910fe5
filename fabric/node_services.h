// SPDX-License-Identifier: Apache-2.0
// What the fabric wants of single nodes, carried out by their agents: standby subnet managers, IMEX
// of an NVLink domain, keys of Fabric Manager, RoCE marking.
//
// Facets of a node: fabric.opensm, fabric.roce, fabric.manager, fabric.imex, fabric.nvlink (the
// whole domain as this node sees it).
#pragma once

#include "fabric/opensm/subnet_manager.h"
#include "fabric/options.h"
#include "gateway/agent_gateway.h"
#include "lifecycle/model/phase.h"

#include <functional>
#include <map>
#include <string>

namespace muster::fabric {

inline constexpr std::string_view kOpensm = "fabric.opensm", kRoce = "fabric.roce",
                                  kImex = "fabric.imex", kNvlink = "fabric.nvlink",
                                  kManager = "fabric.manager";

/// Files of one service of a node, by the names that the agent knows (agent/tasks/node_service.h).
struct ServiceFiles {
  std::string service;
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> settings =
      {};  ///< keys of its own configuration file; all others stay
  /// Of what the service reads; a seed (guid2lid), which it changes itself, is not part of it.
  std::string digest() const;
};

/// The domain that a node is in; nullptr: none.
const inventory::NvlinkDomain* domainOf(const inventory::Cluster& cluster, const NodeName& node);
/// nodes_config.cfg: the address of each node, the same on all of them. Errors: InvalidInput (a
/// node without an address, or unknown)
Result<ServiceFiles> imexFiles(const inventory::Cluster& cluster,
                               const inventory::NvlinkDomain& domain);
/// The keys of fabricmanager.cfg that a driver of the profile declares; all others stay. Nothing:
/// none does.
std::optional<ServiceFiles> managerFiles(const inventory::Cluster& cluster,
                                         const inventory::Profile& profile);
/// The script and the unit that runs it at each boot. Each fabric's settings are for the NICs on it
/// alone.
ServiceFiles roceFiles(const inventory::Profile& profile,
                       const std::vector<const inventory::Fabric*>& fabrics);
/// Errors: as renderManager
Result<ServiceFiles> opensmFiles(const inventory::Cluster& cluster, const inventory::Fabric& fabric,
                                 const Topology& declared, const KnownGuids& known,
                                 const std::string& node, const std::string& guid2lid);

struct RoceProblem {
  std::string text;
  bool is_marking = false;  ///< the node's script sets it; all else is for somebody to mend:
                            ///< addresses, cables, switches
};
/// What a node's RoCE interfaces do otherwise than declared, by what its agent read (probe
/// roce.marking): marking, PFC, congestion control, MTU, NCCL's traffic class, and the switch port
/// at the other end. Empty: as declared. Errors: Corrupt
Result<std::vector<RoceProblem>> roceFindings(const inventory::Cluster& cluster,
                                              const inventory::Fabric& fabric,
                                              const Topology& declared, const inventory::Node& node,
                                              std::string_view probe);
/// The same in words.
Result<std::vector<std::string>> roceProblems(const inventory::Cluster& cluster,
                                              const inventory::Fabric& fabric,
                                              const Topology& declared, const inventory::Node& node,
                                              std::string_view probe);
/// Whether a switch may call its port so: "swp12" and "12" (Cumulus and others), "Ethernet44"
/// (SONiC, four lanes a port), "Eth1/12", "Ethernet12/1".
bool isPortName(std::string_view text, int port);

/// By the fabric's name: where the files of its subnet manager lie.
using FabricOptionsOf = std::function<FabricOptions(const std::string& fabric)>;
std::unique_ptr<lifecycle::Phase> makeNodeServicesPhase(const inventory::Cluster& cluster,
                                                        gateway::AgentGateway& agents, Clock& clock,
                                                        FabricOptionsOf options_of);

}  // namespace muster::fabric
