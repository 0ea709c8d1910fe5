// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/opensm_routing.h"

#include <algorithm>

namespace muster::inventory {

std::vector<std::string_view> routingPreferences(std::string_view routing) {
  std::vector<std::string_view> engines;
  for (;;) {
    const auto comma = routing.find(',');
    engines.push_back(routing.substr(0, comma));
    if (comma == std::string_view::npos) return engines;
    routing.remove_prefix(comma + 1);
  }
}

bool namesRouting(std::string_view routing, std::string_view engine) {
  const auto engines = routingPreferences(routing);
  return std::find(engines.begin(), engines.end(), engine) != engines.end();
}

std::string_view unknownRouting(std::string_view routing) {
  for (const auto engine : routingPreferences(routing))
    if (std::find(kRoutingEngines.begin(), kRoutingEngines.end(), engine) == kRoutingEngines.end())
      return engine.empty() ? std::string_view("''") : engine;
  return {};
}

}  // namespace muster::inventory
