// SPDX-License-Identifier: Apache-2.0
// What gates set of a check's parameters, instead of what their level and the profile say.
#pragma once

#include "base/diagnostic.h"
#include "inventory/model/fwd.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace muster::validate {

/// Which parameters gates may set of the check: "n, seconds, min_gflops"; empty: none, or no such
/// check.
std::string paramNames(std::string_view check);

/// What is wrong with the parameters that gates set: a check that is not in the catalogue or not in
/// the gate, a parameter that the check does not have, a word where it wants a number. Errors, each
/// at its gate.
void evaluateGates(const inventory::Cluster& cluster, Diagnostics& diagnostics);

/// Gates that are run on idle nodes (active_checks of a pool): parameters that make one of their
/// checks longer than a job that wants the node may wait. Errors, each at its gate.
void evaluateActiveChecks(const inventory::Cluster& cluster, Diagnostics& diagnostics);

/// Lays the gate's own parameters of this check over `params`.
void setOwnParams(const inventory::Gate& gate, std::string_view check, nlohmann::json& params);

/// The gate's own number, where it sets one.
std::optional<double> ownNumber(const inventory::Gate& gate, std::string_view check,
                                const std::string& param);

}  // namespace muster::validate
