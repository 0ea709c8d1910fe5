// SPDX-License-Identifier: Apache-2.0
// Redfish by SSDP (DSP0266, "Redfish service discovery"): services announce themselves, and answer
// a search.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "discovery/machine.h"

#include <string_view>

namespace muster::discovery {

inline constexpr std::string_view kSsdpGroup = "239.255.255.250";
inline constexpr std::uint16_t kSsdpPort = 1900;

struct SsdpService {
  std::string url;    ///< "https://10.20.250.7": of the service's root, without the path
  std::string uuid;   ///< of the service, which for most BMCs is not the system's
  bool gone = false;  ///< it says goodbye
};

/// A NOTIFY or the answer to a search. Errors: Corrupt (not SSDP, another kind of service, no https
/// address, an address that is not the sender's: nobody announces somebody else)
Result<SsdpService> parseSsdp(std::string_view datagram, Ipv4 sender);
std::string ssdpSearch(int seconds);
Machine sightingOf(const SsdpService& service);

}  // namespace muster::discovery
