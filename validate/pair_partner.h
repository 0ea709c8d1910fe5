// Who tests RDMA with whom.
#pragma once

#include "agent/protocol/gateway.h"
#include "inventory/cluster.h"

#include <optional>
#include <set>
#include <string>

namespace muster::validate {

struct Partner {
  NodeName node;
  std::string device;   ///< RDMA device there
  std::string address;  ///< where its server listens
};

/// The first RDMA device that the node's installed agent reports; empty when there is none.
std::string rdmaDeviceOf(const agent::AgentGateway& agents, const NodeName& node);

/// The nearest node of the same fabric (by place in the inventory, wrapping) that runs its installed system, has an RDMA
/// device and is not in `busy`. nullopt: nobody can serve now.
std::optional<Partner> choosePartner(const inventory::Cluster& cluster, const inventory::Node& node, const agent::AgentGateway& agents,
                                     const std::set<NodeName>& busy);

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
