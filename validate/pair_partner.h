// SPDX-License-Identifier: Apache-2.0
// Who tests RDMA with whom. The rule and its reasons: docs/adr/0011-pair-partners.md
#pragma once

#include "base/ids.h"
#include "gateway/agent_gateway.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::validate {

struct Partner {
  NodeName node;
  std::vector<std::string> devices;  ///< RDMA devices there on the fabric that the node has its
                                     ///< collectives on, by name: rail by rail
  std::string address;               ///< where its server listens
  bool pooled = false;               ///< it may be running jobs: its pool is asked before the test
};

/// The RDMA devices of the node on its fabric, rail by rail: those that the profile names under
/// `rails` and the installed agent reports; where it names none, those of the fabric's link layer,
/// mlx5_2 before mlx5_10. A management NIC beside the rails is no rail. `fabric`: its name; empty:
/// that of the profile's collectives. On one of several fabrics only rails are.
std::vector<std::string> railDevicesOf(const inventory::Cluster& cluster,
                                       const inventory::Node& node,
                                       const gateway::AgentGateway& agents,
                                       const std::string& fabric = {});

/// Everybody who could serve, best first: those that are out of every pool before those that are in
/// one, and near places in the inventory before far ones. On every fabric that the node is on, in
/// its installed system, with an RDMA device.
std::vector<Partner> partnersOf(const inventory::Cluster& cluster, const inventory::Node& node,
                                const gateway::AgentGateway& agents,
                                const lifecycle::FactSet& facts);

/// Why a node that belongs to a pool must not be disturbed by a test now; empty: it may be.
/// `pool`: its fact of this very moment, nullopt when it could not be read.
std::string whyNotDisturb(const NodeName& node, const std::optional<lifecycle::Fact>& pool);

/// Keeps two nodes marked as busy for its lifetime.
class PairHold {
 public:
  PairHold(std::set<NodeName>& busy, NodeName a, NodeName b);
  ~PairHold();
  PairHold(const PairHold&) = delete;
  PairHold& operator=(const PairHold&) = delete;

 private:
  std::set<NodeName>& busy_;
  NodeName a_, b_;
};

}  // namespace muster::validate
