// SPDX-License-Identifier: Apache-2.0
// Views of a fabric: what is declared and what the newest look has found.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace muster::app {
struct FabricCable;
struct FabricSummary;
}  // namespace muster::app

namespace muster::cli {

/// `cables`: those to be listed.
std::string fabricText(const app::FabricSummary& fabric,
                       const std::vector<app::FabricCable>& cables);
/// {"fabric": …, "cables": […]}
nlohmann::json fabricJson(const app::FabricSummary& fabric,
                          const std::vector<app::FabricCable>& cables);

}  // namespace muster::cli
