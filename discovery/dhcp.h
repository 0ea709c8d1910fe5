// SPDX-License-Identifier: Apache-2.0
// What a DHCP request tells of the machine that sends it (RFC 2131, 2132, 4578). Only heard, never
// answered.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "discovery/machine.h"

#include <optional>
#include <string_view>

namespace muster::discovery {

struct DhcpRequest {
  Mac mac;
  std::string
      vendor_class;  ///< option 60: "PXEClient:Arch:00007:UNDI:003016", "HTTPClient:…", "iDRAC"
  std::string host_name;  ///< option 12
  std::string
      uuid;      ///< option 97: the machine's SMBIOS UUID, as PXE and HTTP boot firmware sends it
  Ipv4 relay;    ///< that passed the request on (giaddr); 0.0.0.0: none
  Ipv4 address;  ///< that it has or asks for; 0.0.0.0: none

  bool boots() const {
    return vendor_class.starts_with("PXEClient") || vendor_class.starts_with("HTTPClient");
  }
};

/// The payload of a UDP datagram to port 67. Errors: Corrupt (no request of an Ethernet client)
Result<DhcpRequest> parseDhcp(std::string_view payload);
/// The payload of an IPv4 packet when it is UDP to port 67 and whole.
std::optional<std::string_view> dhcpPayload(std::string_view ip_packet);
Machine sightingOf(const DhcpRequest& request);

}  // namespace muster::discovery
