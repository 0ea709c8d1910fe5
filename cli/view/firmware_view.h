// SPDX-License-Identifier: Apache-2.0
// Views of firmware: each node's way to its baseline, for people and as JSON.
#pragma once

#include "firmware/baselines.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace muster::cli {

struct NodeUpgradePath {
  std::string node;
  const inventory::FirmwareBaseline* baseline = nullptr;
  firmware::Versions running;
  firmware::UpgradePath path;
};

/// Nodes whose way is the same stand together: "gpu[001-128]  baseline …".
std::string firmwareText(const std::vector<NodeUpgradePath>& nodes);
nlohmann::json firmwareJson(const std::vector<NodeUpgradePath>& nodes);

}  // namespace muster::cli
