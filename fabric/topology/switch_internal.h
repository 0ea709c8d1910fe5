// SPDX-License-Identifier: Apache-2.0
// Parts of a switch that answer as if they were a HCA; nobody cables them. (Quantum switches,
// in-network reduction)
#pragma once

#include "fabric/topology/topology.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::fabric {

/// What it calls itself; root of a host may write that too.
inline bool isCalledAggregationNode(std::string_view description) {
  return description.starts_with("Mellanox Technologies Aggregation Node");
}

/// HCAs that are called so, by name, with the device id where the text tells one.
using CalledAggregationNodes = std::map<std::string, std::optional<std::uint64_t>, std::less<>>;

/// Takes out those that are where such a part is: their one cable leads to the highest port of a
/// switch, above those that have cages, as port 41 of a switch with 40. One whose device id is an
/// adapter's is none. Where no id is told, the number of ports must be odd: an even one is that of
/// a switch without such a part. Source: public outputs of ibnetdiscover and ibswitches (Switch 41,
/// Switch 65); pci.ids, vendor 15b3 (0x10…: ConnectX, 0xa2d…: BlueField; 0xcf09 is an aggregation
/// node)
Topology withoutSwitchParts(Topology topology, const CalledAggregationNodes& called);

}  // namespace muster::fabric
