// SPDX-License-Identifier: Apache-2.0
// Watches: DHCP requests of one network (by a packet socket, so that any DHCP server may run there,
// ours too) and SSDP. Both only listen; SSDP asks once when it starts.
#pragma once

#include "base/async/task.h"
#include "base/ip_address.h"
#include "discovery/dhcp.h"
#include "discovery/ssdp.h"

#include <functional>

namespace muster::discovery {

/// Until `limit` is over. Errors: Denied (needs CAP_NET_RAW), NotFound (no such interface)
Async<void> watchDhcp(std::string interface, std::chrono::milliseconds limit,
                      std::function<void(DhcpRequest)> heard);

/// Joins the group on the interface that has `address` and searches there once. What is no Redfish
/// service is dropped. Errors: Conflict (the port), NotFound (no interface has that address)
Async<void> watchSsdp(Ipv4 address, std::chrono::milliseconds limit,
                      std::function<void(SsdpService)> heard);

/// The interface that has this address. Errors: NotFound
Result<std::string> interfaceOf(Ipv4 address);
/// Its first address. Errors: NotFound
Result<Ipv4> addressOf(const std::string& interface);

}  // namespace muster::discovery
