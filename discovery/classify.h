// SPDX-License-Identifier: Apache-2.0
// What the seen machines are to the inventory: known nodes, undeclared machines, and what does not
// fit. Pure.
#pragma once

#include "discovery/machine.h"
#include "inventory/model/cluster.h"

namespace muster::discovery {

/// The declared node whose BMC, MAC or serial this is; null for an undeclared machine. The BMC's
/// address decides last: machines are swapped, addresses stay.
const inventory::Node* nodeOf(const Machine& machine, const inventory::Cluster& cluster);

struct Anomaly {
  std::string what;   ///< "two machines have the serial X"
  std::string where;  ///< their BMCs
  std::string what_to_do;
  NodeName node{};  ///< that it is about; empty: no declared one
};

/// Duplicate serials, one MAC at two machines, declared nodes behind another's BMC.
std::vector<Anomaly> anomalies(const std::vector<Machine>& machines,
                               const inventory::Cluster& cluster);

}  // namespace muster::discovery
