// SPDX-License-Identifier: Apache-2.0
// Parts of a switch that answer as if they were a HCA; nobody cables them. (Quantum switches,
// in-network reduction)
#pragma once

#include <string_view>

namespace muster::fabric {

/// By what a HCA calls itself.
inline bool isSwitchInternalHca(std::string_view description) {
  return description.starts_with("Mellanox Technologies Aggregation Node");
}

}  // namespace muster::fabric
