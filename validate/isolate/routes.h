// SPDX-License-Identifier: Apache-2.0
// The cables between switches that the tests of an isolation use, as the switches' tables were when
// it began.
#pragma once

#include "base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace muster::validate::isolate {

/// A switch sends by destination, so a way follows from where it begins and which node it leads to.
struct RailRoutes {
  std::vector<int> entry;  ///< of each node: the switch that it hangs on, numbered from 0
  std::vector<std::vector<std::vector<int>>>
      ways;  ///< [switch][node] → cables from the one to the other
};

struct SiteRoutes {
  std::vector<std::string> cables;  ///< "leaf-su1-r0 port 33 - spine-001 port 1"
  std::vector<RailRoutes> rails;

  /// Cables of a test of two nodes, each once: its data go one way or the other, or both.
  std::vector<int> between(int a, int b, int rail) const;
  /// Whether they are whole: every index within its bounds, for so many nodes and rails.
  bool fit(std::size_t nodes, int rails_of_site) const;
};

nlohmann::json toJson(const SiteRoutes& routes);
/// Throws nlohmann::json::exception where members are missing or of another type.
SiteRoutes routesFromJson(const nlohmann::json& json);

}  // namespace muster::validate::isolate
