// SPDX-License-Identifier: Apache-2.0
// Seam: what the network shows of a caller: the leases of muster's own DHCP server and the kernel's
// neighbour table.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "base/result.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace muster::gateway {

/// A lease as the DHCP server has written it.
struct DhcpLease {
  Ipv4 address;
  std::string expires;  ///< as written; another text means that it was granted anew
};

/// What the neighbour table says of an address.
enum class NeighbourMatch { Same, Other, Absent };

class NetworkEvidence {
 public:
  virtual ~NetworkEvidence() = default;
  /// Errors: Unavailable (the leases are there and cannot be read), Corrupt
  virtual Result<std::optional<DhcpLease>> leaseOf(const Mac& mac) const = 0;
  /// Is the machine with this address on an attached subnet the one with this MAC? Errors:
  /// Unavailable (the table cannot be read)
  virtual Result<NeighbourMatch> neighbour(Ipv4 address, const Mac& mac) const = 0;
};

inline constexpr const char* kNeighbourTable = "/proc/thread-self/net/arp";

/// Reads dnsmasq's lease file and the kernel's table whenever it is asked. A lease file that is not
/// there holds no lease.
std::unique_ptr<NetworkEvidence> makeNetworkEvidence(
    std::filesystem::path lease_file, std::filesystem::path neighbour_table = kNeighbourTable);

}  // namespace muster::gateway
