// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/sensors.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxChassis = 128;
constexpr std::size_t kMaxSensors = 1'024;  ///< of one chassis
constexpr std::size_t kMaxReadings = 4'096;
constexpr std::size_t kMaxLeakDetectors = 64;
constexpr std::size_t kMaxSupplies = 64;  ///< of one chassis
constexpr std::string_view kSupply =
    "PowerSupply";  ///< counts by its health, also without a reading

/// An entry of Thermal or Power, as they were before Sensor was invented.
struct OldList {
  std::string_view list, value, kind, unit;
};
constexpr std::array<OldList, 2> kThermal = {
    {{"Temperatures", "ReadingCelsius", "Temperature", "Cel"},
     {"Fans", "Reading", "Rotational", "RPM"}}};
constexpr std::array<OldList, 3> kPower = {{{"PowerControl", "PowerConsumedWatts", "Power", "W"},
                                            {"PowerSupplies", "PowerInputWatts", kSupply, "W"},
                                            {"Voltages", "ReadingVolts", "Voltage", "V"}}};

std::string nameOf(const Json& json) {
  for (const char* field : {"Name", "MemberId", "Id"})
    if (auto name = textAt(json, field); !name.empty()) return name;
  return {};
}

bool isAbsent(const Json& json) { return textAt(json, "Status/State") == "Absent"; }

void addOld(const Json& resource, std::span<const OldList> lists, std::vector<SensorReading>& out) {
  for (const auto& list : lists) {
    const Json* entries = find(resource, list.list);
    if (!entries || !entries->is_array()) continue;
    for (const Json& entry : *entries) {
      const auto value = numberAt(entry, list.value);
      const auto health = textAt(entry, "Status/Health");
      const bool counts = value || (list.kind == kSupply && !health.empty());
      if (!counts || isAbsent(entry) || out.size() >= kMaxReadings) continue;
      auto unit = textAt(entry, "ReadingUnits");
      if (unit.empty() && value) unit = list.unit;
      out.push_back({nameOf(entry), std::string(list.kind), unit, value.value_or(0), health,
                     numberAt(entry, "UpperThresholdCritical")});
    }
  }
}

std::optional<SensorReading> readingOf(const Json& sensor) {
  const auto value = numberAt(sensor, "Reading");
  if (!value || isAbsent(sensor)) return std::nullopt;
  return SensorReading{nameOf(sensor),
                       textAt(sensor, "ReadingType"),
                       textAt(sensor, "ReadingUnits"),
                       *value,
                       textAt(sensor, "Status/Health"),
                       numberAt(sensor, "Thresholds/UpperCritical/Reading")};
}

}  // namespace

/// A supply that says nothing of its own health has that of its redundancy group (DGX H100).
Task<std::vector<SensorReading>> RedfishSensors::powerSupplies(std::string subsystem) {
  std::vector<SensorReading> out;
  const auto resource = co_await resources_.session().get(subsystem);
  if (!resource) co_return out;
  auto collection = linkAt(resource->body, "PowerSupplies");
  const auto supplies = co_await resources_.members(
      collection.empty() ? subsystem + "/PowerSupplies" : std::move(collection), kMaxSupplies);
  if (!supplies) co_return out;
  std::map<std::string, std::string> group_health;
  const Json* groups = find(resource->body, "PowerSupplyRedundancy");
  for (const Json& group : groups && groups->is_array() ? *groups : Json::array())
    for (const auto& uri : linksAt(group, "RedundancyGroup"))
      group_health[uri] = textAt(group, "Status/Health");
  for (const Member& supply : supplies->found) {
    auto health = textAt(supply.json, "Status/Health");
    if (health.empty()) health = group_health[supply.uri];
    if (!isAbsent(supply.json) && !health.empty())
      out.push_back({nameOf(supply.json), std::string(kSupply), "", 0, health, std::nullopt});
  }
  co_return out;
}

/// Only what has no other place is read one by one.
Task<std::vector<SensorReading>> RedfishSensors::readingsOf(Json chassis) {
  std::vector<SensorReading> out;
  for (const auto& [name, lists] :
       {std::pair<const char*, std::span<const OldList>>{"Thermal", kThermal}, {"Power", kPower}}) {
    const auto link = linkAt(chassis, name);
    if (link.empty()) continue;
    if (auto resource = co_await resources_.session().get(link)) addOld(resource->body, lists, out);
  }
  const auto collection = linkAt(chassis, "Sensors");
  const auto known = resources_.knownUris();
  if (!out.empty() || collection.empty() || !known) co_return out;
  auto sensors = co_await resources_.members(collection, kMaxSensors, known->quirks.inventory_read,
                                             RedfishResources::Want::Expanded);
  if (!sensors) co_return out;
  for (const Member& sensor : sensors->found)
    if (auto reading = readingOf(sensor.json)) out.push_back(std::move(*reading));
  co_return out;
}

Task<std::vector<SensorReading>> RedfishSensors::leakDetectors(std::string subsystem) {
  std::vector<SensorReading> out;
  auto detectors =
      co_await resources_.members(subsystem + "/LeakDetection/LeakDetectors", kMaxLeakDetectors);
  if (!detectors) co_return out;  // most machines have no liquid
  for (const Member& detector : detectors->found) {
    const auto state = textAt(detector.json, "DetectorState");
    if (!state.empty())
      out.push_back({nameOf(detector.json), "LeakDetector", "", state == "OK" ? 0.0 : 1.0, state,
                     std::nullopt});
  }
  co_return out;
}

Async<std::vector<SensorReading>> RedfishSensors::sensors() {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(chassis, co_await resources_.members(at.chassis, kMaxChassis));
  std::vector<SensorReading> out;
  const auto add = [&out](std::vector<SensorReading> readings) {
    for (auto& reading : readings)
      if (out.size() < kMaxReadings) out.push_back(std::move(reading));
  };
  for (const Member& box : chassis.found) {
    add(co_await readingsOf(box.json));
  }
  const bool supplies_shown = std::any_of(
      out.begin(), out.end(), [](const SensorReading& reading) { return reading.kind == kSupply; });
  for (const Member& box : chassis.found) {
    const auto link = linkAt(box.json, "PowerSubsystem");
    if (supplies_shown || link.empty()) continue;
    add(co_await powerSupplies(link));
  }
  for (const Member& box : chassis.found) {
    const auto link = linkAt(box.json, "ThermalSubsystem");
    if (link.empty()) continue;
    for (auto& detector : co_await leakDetectors(link)) out.push_back(std::move(detector));
  }
  if (out.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " shows no sensors");
  co_return out;
}

}  // namespace muster::bmc
