// SPDX-License-Identifier: Apache-2.0
// The configuration that a switch really has, against what is rendered for it: SONiC's
// config_db.json, or Cumulus' `nv config show -o json`. Fetched by whoever may (scp, the switch's
// API): here are texts only. Pure.
#pragma once

#include "fabric/roce/roce.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {

struct PortDifference {
  std::string port;    ///< as the switch calls it; empty: the whole switch
  std::string text;    ///< what it does otherwise than declared
  std::string repair;  ///< a command on the switch, or what to load
  friend bool operator==(const PortDifference&, const PortDifference&) = default;
};

/// What differs, port by port. `ports`: the numbers that the declaration cables; empty: those that
/// the file configures. Marking, PFC, MTU (a larger one is good), the lossless class's own buffer
/// and queue, ECN and scheduler of that queue, the strict queue of notifications, the watchdog,
/// ports that are missing or shut down. Errors: Corrupt (neither of
/// the two formats), NotFound (no port looks at DSCP)
Result<std::vector<PortDifference>> checkSwitch(const inventory::Roce& roce,
                                                const std::vector<int>& ports,
                                                std::string_view config);

/// The same of a declared fabric's switch, which is named; its ports are those that are declared.
/// Without a name: those that the file configures. Another switch's file is a difference. Errors:
/// the same, NotFound (no such switch)
Result<std::vector<PortDifference>> checkSwitch(const inventory::Cluster& cluster,
                                                const inventory::Fabric& fabric,
                                                const std::string& name, std::string_view config);

/// The file of another declared switch than `name`, by the host name in it. Nullopt: its own, or a
/// name that nobody declared.
std::optional<PortDifference> isOfAnotherSwitch(std::string_view config, const std::string& name,
                                                const std::set<std::string>& switches);

std::string toText(const std::vector<PortDifference>& differences);
std::string toJson(const std::vector<PortDifference>& differences);

}  // namespace muster::fabric
