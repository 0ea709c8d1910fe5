// SPDX-License-Identifier: Apache-2.0
// Views of firmware: each node's path to its baseline, for people and as JSON.
#pragma once

#include "app/firmware/firmware_baselines.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace muster::cli {

/// Nodes whose path is the same are shown together: "gpu[001-128]  baseline …".
std::string firmwareText(const std::vector<app::NodeUpgrade>& nodes);
nlohmann::json firmwareJson(const std::vector<app::NodeUpgrade>& nodes);

}  // namespace muster::cli
