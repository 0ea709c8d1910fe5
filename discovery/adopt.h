// SPDX-License-Identifier: Apache-2.0
// Adoption: which machine becomes which node. Approvals are kept in the registry; rows for the
// inventory are made from them. Pure.
#pragma once

#include "base/result.h"
#include "discovery/csv_rows.h"
#include "discovery/machine_registry.h"
#include "inventory/model/fwd.h"

namespace muster::discovery {

struct Approval {
  std::string profile;  ///< empty: the rule's, or the only one there is
  std::string rack;
  std::string node;      ///< only for one machine
  std::string boot_mac;  ///< only for one machine: which of its NICs boots
  std::string by;        ///< "alice", "rule hgx"
};
/// Errors: Conflict (it is a node already, or another one has the name), InvalidInput (no such
/// profile)
Result<void> approve(Machine& machine, const Approval& approval, const inventory::Cluster& cluster);
/// Approves what rules with `approve: true` match. Answers how many.
std::size_t applyRules(MachineRegistry& registry, const inventory::Cluster& cluster);
/// Approves the machines of a list and notes what it says of them. What was not seen is answered,
/// one line each. Errors: Conflict (two rows mean one machine)
Result<std::vector<std::string>> applyList(MachineRegistry& registry,
                                           const std::vector<ListedRow>& list,
                                           const std::string& file, const Approval& approval,
                                           const inventory::Cluster& cluster,
                                           std::map<std::string, CsvFields>* extras);

struct Rows {
  std::vector<CsvFields> rows;
  std::vector<std::pair<std::string, std::string>> adopted;  ///< machine's BMC → node
  std::vector<std::string> left_out;                         ///< "SERIAL: why"
};
/// Rows for approved machines that are no nodes yet and belong into this file, in the order of
/// their BMCs' addresses. `extras`: by BMC, what a list said of them (unit, address, switch, port).
/// Errors: InvalidInput (no group of nodes reads the file)
Result<Rows> rowsFor(MachineRegistry& registry, const inventory::Cluster& cluster,
                     const std::filesystem::path& file,
                     const std::map<std::string, CsvFields>& extras);

}  // namespace muster::discovery
