// SPDX-License-Identifier: Apache-2.0
// What a machine draws, of the readings of its BMC. It is kept in the evidence of the fact
// health.bmc (bmc/health_watch.h): {"power": {"watts", "of"}}.
#pragma once

#include "bmc/roles.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

struct MachinePower {
  double watts = 0;
  std::string of;  ///< what was read: "4 power supplies", or the name of the reading
};
/// The greater of the sum of what its power supplies take in and the greatest other power that is
/// read: a machine draws no less than a part of it. Stale readings do not count.
/// nullopt: its BMC reads none. Pure. Source: DSP2046 Power, PowerSupplyMetrics, Sensor
std::optional<MachinePower> machinePowerOf(const std::vector<SensorReading>& readings);
nlohmann::json toJson(const MachinePower& power);
/// From the evidence of a fact of kBmcHealthFacet.
std::optional<MachinePower> machinePowerIn(std::string_view evidence);

}  // namespace muster::bmc
