// SPDX-License-Identifier: Apache-2.0
// Which cables packets take between two HCAs, by the tables of the switches. Pure.
#pragma once

#include "fabric/packet_paths/forwarding.h"
#include "fabric/topology/topology.h"

#include <optional>
#include <unordered_map>

namespace muster::fabric {

class Routes {
 public:
  Routes(const Topology& found, const ForwardingTables& tables);

  /// Those between switches; their numbers are the places here.
  const std::vector<Link>& cables() const { return cables_; }
  /// The switch that an HCA (by its node description) hangs on. Nullopt: there is no such HCA, it
  /// has no cable, or no subnet manager has given it a LID.
  std::optional<int> entry(std::string_view hca) const;
  /// Cables from that switch to an HCA, in the order in which packets take them; empty: it hangs
  /// there too. Nullopt: no such HCA, or packets do not arrive.
  std::optional<std::vector<int>> from(int entry, std::string_view hca) const;

 private:
  struct Leg {
    int device = -1;  ///< at the other end; -1: nothing
    int cable = -1;   ///< its number; -1: not between switches
  };
  struct Hca {
    int device, entry, lid;
  };
  std::vector<Link> cables_;
  std::vector<std::vector<Leg>> legs_;           ///< by device and port
  std::vector<const std::vector<int>*> tables_;  ///< by device; into `kept_`
  ForwardingTables kept_;
  std::unordered_map<std::string, Hca> hcas_;
};

/// "leaf-su1-r0 port 33 - spine-001 port 1"
std::string toString(const Link& cable);

}  // namespace muster::fabric
