// SPDX-License-Identifier: Apache-2.0
#include "bmc/machine_power.h"

#include "base/json_input.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::bmc {
namespace {

constexpr double kMostWatts = 1e6;  ///< of a machine; more is no reading

}  // namespace

std::optional<MachinePower> machinePowerOf(const std::vector<SensorReading>& readings) {
  MachinePower all, greatest;
  std::size_t supplies = 0;
  for (const auto& reading : readings) {
    if (reading.stale || reading.unit != "W" || !(reading.value > 0) || reading.value > kMostWatts)
      continue;
    if (reading.kind == "PowerSupply") {
      all.watts += reading.value;
      ++supplies;
    } else if (reading.kind == "Power" && reading.value > greatest.watts) {
      greatest = {reading.value, reading.name};
    }
  }
  all.of = fmt::format("{} power supplies", supplies);
  // Supplies that say nothing would be missing from the sum.
  if (all.watts >= greatest.watts && supplies > 0) return all;
  if (greatest.watts > 0) return greatest;
  return std::nullopt;
}

nlohmann::json toJson(const MachinePower& power) {
  return {{"watts", power.watts}, {"of", power.of}};
}

std::optional<MachinePower> machinePowerIn(std::string_view evidence) {
  const auto held = jsonOrNone(evidence, kKeptJson);
  const auto power = held.is_object() ? held.find("power") : held.end();
  if (!held.is_object() || power == held.end() || !power->is_object()) return std::nullopt;
  const auto watts = power->find("watts"), of = power->find("of");
  if (watts == power->end() || !watts->is_number()) return std::nullopt;
  MachinePower out{watts->get<double>(), ""};
  if (of != power->end() && of->is_string()) out.of = of->get<std::string>();
  if (!(out.watts > 0) || out.watts > kMostWatts) return std::nullopt;
  return out;
}

}  // namespace muster::bmc
