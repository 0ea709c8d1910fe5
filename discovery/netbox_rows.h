// SPDX-License-Identifier: Apache-2.0
// NetBox's devices beside the inventory's nodes: rows that could be added, what is said in two
// ways, and what NetBox leaves open. What people wrote is never changed. Pure.
#pragma once

#include "discovery/csv_rows.h"
#include "discovery/netbox.h"
#include "inventory/model/fwd.h"

#include <string>
#include <vector>

namespace muster::discovery {

/// One key of a node that NetBox knows otherwise.
struct NetboxDifference {
  std::string node, key;
  std::string inventory, netbox;  ///< empty inventory: only NetBox says it
  friend bool operator==(const NetboxDifference&, const NetboxDifference&) = default;
};

struct NetboxComparison {
  std::size_t devices = 0;            ///< that NetBox has listed
  std::vector<CsvFields> rows;        ///< of nodes that the inventory does not have, by name
  std::vector<std::string> left_out;  ///< devices that could not become rows: "gpu003: why"
  std::vector<std::string> remarks;   ///< what NetBox leaves open of others: "gpu004: it is in no
                                      ///< rack"
  std::vector<NetboxDifference> differences;
  std::vector<std::string> only_here;  ///< nodes that NetBox has not listed
  bool isSame() const { return rows.empty() && differences.empty() && left_out.empty(); }
};

NetboxComparison compareWithNetbox(const std::vector<NetboxDevice>& devices,
                                   const inventory::Cluster& cluster);

}  // namespace muster::discovery
