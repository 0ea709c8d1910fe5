// SPDX-License-Identifier: Apache-2.0
// Networks that the internet's protocols keep for themselves: no machine has an address there that
// another one could reach.
// Source: RFC 6890 and IANA's special-purpose address registries; RFC 5771, RFC 4291
#pragma once

#include "base/ip_network.h"

#include <string>

namespace muster::inventory {

/// "127.0.0.0/8 (loopback)" of the first such network that this one shares addresses with, which
/// 0.0.0.0/0 does; empty: none.
std::string specialNetworkIn(const IpNetwork& network);

}  // namespace muster::inventory
