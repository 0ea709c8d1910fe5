// SPDX-License-Identifier: Apache-2.0
// The configuration that a switch really has, against what is rendered for it: SONiC's
// config_db.json, or Cumulus' `nv config show -o json`. Fetched by whoever may (scp, the switch's
// API): here are texts only. Pure.
#pragma once

#include "fabric/roce/roce.h"

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
/// the file configures. Marking, PFC, MTU, ECN of the lossless queue, the strict queue of
/// notifications, the watchdog, ports that are missing or shut down. Errors: Corrupt (neither of
/// the two formats), NotFound (no port looks at DSCP)
Result<std::vector<PortDifference>> checkSwitch(const inventory::Roce& roce,
                                                const std::vector<int>& ports,
                                                std::string_view config);

std::string toText(const std::vector<PortDifference>& differences);
std::string toJson(const std::vector<PortDifference>& differences);

}  // namespace muster::fabric
