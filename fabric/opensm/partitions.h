// SPDX-License-Identifier: Apache-2.0
// Partitions: the declaration → rules → partitions.conf → the PKey table that every port must have.
//
// OpenSM answers a typo in partitions.conf, or a missing file, by making every port a full member
// of everything. So the text is read back by a strict parser of our own before OpenSM sees it, and
// the tables are read from the ports afterwards.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {

struct Topology;

inline constexpr std::uint16_t kDefaultPkey = 0x7fff;
inline constexpr std::uint16_t kFullMember =
    0x8000;  ///< set in a PKey table entry of a full member

/// Members are device names ("gpu001 mlx5_0") as declared, port GUIDs ("0x…16 digits") as rendered.
struct Members {
  bool all = false;   ///< OpenSM's ALL
  bool self = false;  ///< OpenSM's SELF: the port of the subnet manager
  std::set<std::string> ports;
  friend bool operator==(const Members&, const Members&) = default;
};
struct PartitionRule {
  std::string name;
  std::uint16_t pkey = 0;
  bool ipoib = false;
  Members full, limited;
  friend bool operator==(const PartitionRule&, const PartitionRule&) = default;
};
using PartitionRules = std::vector<PartitionRule>;

/// Device name → port GUID, of HCAs that are proven to be at their declared place.
using PortGuids = std::map<std::string, std::string>;

/// Checks the declaration and resolves its members to HCAs. The first rule is always Default.
/// Errors: InvalidInput, every problem in one text (unknown member, PKey out of range or used
/// twice, name that OpenSM misreads)
Result<PartitionRules> declaredPartitions(const inventory::Cluster& cluster,
                                          const inventory::Fabric& fabric,
                                          const Topology& declared);

/// Members by GUID. A HCA whose GUID is not known is left out: it gets no membership rather than a
/// wrong one.
PartitionRules withGuids(const PartitionRules& rules, const PortGuids& guids);

/// partitions.conf of rules whose members are GUIDs.
std::string renderPartitions(const PartitionRules& rules);
/// Strict reader of what renderPartitions writes. Errors: InvalidInput with line number
Result<PartitionRules> parsePartitions(std::string_view text);

/// Entries of one port's PKey table.
using PkeyTable = std::set<std::uint16_t>;
PkeyTable tableOf(const PartitionRules& rules, const std::string& member, bool is_subnet_manager);
std::string toString(const PkeyTable& table);
/// Whether a port with this table may talk to somebody that the declared one keeps away. Too narrow
/// a table is no danger.
bool isWider(const PkeyTable& found, const PkeyTable& declared);

/// SHA-256 over the table that every declared HCA must have: what the facet fabric.partitions
/// wants.
std::string tablesDigest(const PartitionRules& rules, const Topology& declared);

}  // namespace muster::fabric
