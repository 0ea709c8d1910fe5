// SPDX-License-Identifier: Apache-2.0
// The cabling sheet: what a crew needs to cable a rack, from the declaration alone.
#pragma once

#include "fabric/topology/topology.h"

namespace muster::fabric {

/// Where a device stands; a rack is empty when nobody declared it.
struct Place {
  std::string rack;
  int unit = 0;             ///< 0: not declared
  std::string str() const;  ///< "A01 U12", "A01", "?"
};
/// Of every declared device: HCAs by their node, switches by `switches` of the fabric. Pure.
std::map<std::string, Place> placesOf(const inventory::Cluster& cluster,
                                      const inventory::Fabric& fabric, const Topology& declared);

/// One row a cable's end, so that each row is the label to put on it, ordered by rack, unit and
/// port: rack,unit,device,port,label,to_rack,to_unit,to_device,to_port,link,cable. `cable` numbers
/// the cables, the same at both ends. `rack`: only ends in this rack; empty: all.
std::string cablingCsv(const Topology& declared, const std::map<std::string, Place>& places,
                       const std::string& rack = {});
/// Counts of devices and of cables by kind, and what about the declaration looks like a slip:
/// leaves with unequal uplinks.
std::string cablingSummary(const Topology& declared);

}  // namespace muster::fabric
