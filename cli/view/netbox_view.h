// SPDX-License-Identifier: Apache-2.0
// What NetBox says of the nodes, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace muster::app {
struct NetboxImport;
}

namespace muster::cli {

std::string netboxText(const app::NetboxImport& import);
nlohmann::json netboxJson(const app::NetboxImport& import);

}  // namespace muster::cli
