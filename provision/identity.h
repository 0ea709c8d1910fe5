// SPDX-License-Identifier: Apache-2.0
// Is the machine behind a BMC the declared node? Pure (docs/adr/0225).
#pragma once

#include "bmc/bmc.h"
#include "inventory/model/fwd.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace muster::provision {

/// "yes", only when its serial or a MAC fits the inventory, or when it is what the operator accepts
/// (bmc: {accept: …}); "no: …" when one of them does not; "unknown: …" when there is nothing to
/// compare, since any machine could be behind that BMC.
std::string identityOf(const inventory::Node& node, const bmc::SystemInfo& system);
/// What to do about an identity that is not "yes".
std::string identityAdvice(const inventory::Node& node, const bmc::SystemInfo& system,
                           const std::string& identity);
/// What is reported where: the evidence of the fact.
nlohmann::json identityEvidence(const bmc::SystemInfo& system);

}  // namespace muster::provision
