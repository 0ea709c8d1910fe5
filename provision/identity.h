// SPDX-License-Identifier: Apache-2.0
// Is the machine behind a BMC the declared node? Pure.
#pragma once

#include "bmc/bmc.h"
#include "inventory/model/fwd.h"

#include <string>

namespace muster::provision {

/// "yes", only when its serial or a MAC fits the inventory; "no: …" when one of them does not;
/// "unknown: …" when there is nothing to compare, since any machine could be behind that BMC.
std::string identityOf(const inventory::Node& node, const bmc::SystemInfo& system);
/// What to do about an identity that is not "yes".
std::string identityAdvice(const inventory::Node& node, const bmc::SystemInfo& system,
                           const std::string& identity);

}  // namespace muster::provision
