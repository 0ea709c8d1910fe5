// SPDX-License-Identifier: Apache-2.0
// Who answers DHCP on a wire. docs/adr/0303
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "base/result.h"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace muster::app {

inline constexpr std::chrono::milliseconds kDhcpListen{
    4000};  ///< servers that ping first wait up to 3 s

/// A DHCPDISCOVER as a machine without an address sends it (RFC 2131 §4.4.1), which asks for the
/// answer by broadcast.
std::string dhcpDiscover(const Mac& mac, std::uint32_t transaction);
/// The server that a DHCPOFFER for this transaction names (option 54); nullopt: it is none.
std::optional<Ipv4> offeringServer(std::string_view payload, std::uint32_t transaction);

/// Asks on the interface, and listens. Errors: Denied (not root), Conflict (another program has
/// port 68), those of the socket
Result<std::set<Ipv4>> dhcpServersOn(const std::string& interface,
                                     std::chrono::milliseconds listen = kDhcpListen);

}  // namespace muster::app
