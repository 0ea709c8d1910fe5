// SPDX-License-Identifier: Apache-2.0
// What a test's network shows of who calls.
#pragma once

#include "base/ip_address.h"
#include "gateway/network_evidence.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace muster::test {

class FakeNetworkEvidence final : public gateway::NetworkEvidence {
 public:
  std::map<Mac, gateway::DhcpLease> leases;
  std::set<std::pair<std::string, Mac>>
      neighbours;  ///< address and MAC; of one address there may be several, as for several devices

  void show(const std::string& address, const std::string& mac) {
    neighbours.insert({address, *Mac::parse(mac)});
  }
  void lease(const std::string& mac, const std::string& address, const std::string& expires) {
    leases[*Mac::parse(mac)] = {*Ipv4::parse(address), expires};
  }

  Result<std::optional<gateway::DhcpLease>> leaseOf(const Mac& mac) const override {
    const auto found = leases.find(mac);
    return found == leases.end() ? std::nullopt : std::optional(found->second);
  }
  Result<gateway::NeighbourMatch> neighbour(Ipv4 address, const Mac& mac) const override {
    bool other = false;
    for (const auto& [at, who] : neighbours) {
      if (at != address.str()) continue;
      if (who == mac) return gateway::NeighbourMatch::Same;
      other = true;
    }
    return other ? gateway::NeighbourMatch::Other : gateway::NeighbourMatch::Absent;
  }
};

}  // namespace muster::test
