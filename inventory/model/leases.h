// SPDX-License-Identifier: Apache-2.0
// Whose address is whose: known only where muster itself hands the addresses out.
#pragma once

#include "inventory/model/networks.h"

namespace muster::inventory {

/// Every node gets its own address by its MAC, so whoever calls from another address is not that
/// node.
inline bool leasesAddresses(const Network& network) {
  return network.dhcp_mode == DhcpMode::Authoritative || network.dhcp_mode == DhcpMode::Relay;
}

}  // namespace muster::inventory
