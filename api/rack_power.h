// SPDX-License-Identifier: Apache-2.0
// What the machines of each rack draw, as their BMCs were read last, and what they would draw under
// full load.
#pragma once

#include "base/clock.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

struct PowerReading {
  std::string node;
  double watts = 0;
  std::string of;  ///< what was added up, as the BMC's look has written it: "4 power supplies"
  WallTime at;
};

struct RackPower {
  std::vector<PowerReading> readings;  ///< not older than a few looks at a BMC
  std::vector<std::string> unread;     ///< nodes of which nothing is known
  double drawn_watts = 0;              ///< of `readings`
  std::optional<WallTime> oldest_at;   ///< of `readings`
  std::int64_t full_load_watts = 0;    ///< of all nodes
  std::size_t estimated_nodes = 0;     ///< whose profile does not declare what they draw

  std::size_t nodes() const { return readings.size() + unread.size(); }
  /// `health`: the node's fact health.bmc; null: there is none.
  void add(const inventory::Cluster& cluster, const inventory::Node& node,
           const lifecycle::Fact* health, WallTime now);
};

/// By rack, those that have nodes. `facts`: of the whole site.
std::map<std::string, RackPower> powerByRack(const inventory::Cluster& cluster,
                                             const lifecycle::FactSet& facts, WallTime now);

/// {"drawn_watts", "oldest_at"?, "limit_watts"?, "full_load_watts"?, "estimated_nodes"?}: the last
/// three where the rack declares what it may draw.
nlohmann::json powerJson(const RackPower& power, std::optional<int> limit_watts);

}  // namespace muster::api
