// SPDX-License-Identifier: Apache-2.0
// Sensors, and what NVIDIA's roots of trust do behind everybody's back.
#include "bmc/redfish/redfish_bmc.h"

#include "lifecycle/model/facet.h"

#include <algorithm>
#include <array>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxChassis = 128;
constexpr std::size_t kMaxSensors = 1'024;  ///< of one chassis
constexpr std::size_t kMaxReadings = 4'096;
constexpr std::size_t kMaxLeakDetectors = 64;
constexpr const char* kCopyStatus = "Oem/Nvidia/BackgroundCopyStatus";

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
Task<std::vector<SensorReading>> RedfishBmc::powerSupplies(std::string subsystem) {
  std::vector<SensorReading> out;
  const auto resource = co_await session_->get(subsystem);
  if (!resource) co_return out;
  auto collection = linkAt(resource->body, "PowerSupplies");
  const auto supplies =
      co_await members(collection.empty() ? subsystem + "/PowerSupplies" : std::move(collection),
                       kMaxSupplies, RedfishSession::kRequestTimeout);
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

/// Thermal and Power are two requests for all of a chassis; Sensors may be five hundred. Only what
/// has no other place is read one by one.
Async<std::vector<SensorReading>> RedfishBmc::sensors() {
  CO_TRY(at, co_await places());
  CO_TRY(chassis, co_await members(at.chassis, kMaxChassis, RedfishSession::kRequestTimeout));
  std::vector<SensorReading> out;
  for (const Member& box : chassis.found) {
    const auto before = out.size();
    for (const auto& [name, lists] :
         {std::pair<const char*, std::span<const OldList>>{"Thermal", kThermal},
          {"Power", kPower}}) {
      const auto link = linkAt(box.json, name);
      if (link.empty()) continue;
      if (auto resource = co_await session_->get(link)) addOld(resource->body, lists, out);
    }
    const auto collection = linkAt(box.json, "Sensors");
    if (out.size() > before || collection.empty()) continue;
    auto sensors =
        co_await members(collection, kMaxSensors, at.quirks.inventory_read, Want::Expanded);
    if (!sensors) continue;
    for (const Member& sensor : sensors->found)
      if (auto reading = readingOf(sensor.json); reading && out.size() < kMaxReadings)
        out.push_back(std::move(*reading));
  }
  const bool supplies_shown = std::any_of(
      out.begin(), out.end(), [](const SensorReading& reading) { return reading.kind == kSupply; });
  for (const Member& box : chassis.found) {
    const auto link = linkAt(box.json, "PowerSubsystem");
    if (supplies_shown || link.empty()) continue;
    auto read = co_await powerSupplies(link);
    for (auto& supply : read)
      if (out.size() < kMaxReadings) out.push_back(std::move(supply));
  }
  for (const Member& box : chassis.found) {
    const auto link = linkAt(box.json, "ThermalSubsystem");
    if (link.empty()) continue;
    auto detectors = co_await members(link + "/LeakDetection/LeakDetectors", kMaxLeakDetectors,
                                      RedfishSession::kRequestTimeout);
    if (!detectors) continue;  // most machines have no liquid
    for (const Member& detector : detectors->found) {
      const auto state = textAt(detector.json, "DetectorState");
      if (!state.empty())
        out.push_back({nameOf(detector.json), "LeakDetector", "", state == "OK" ? 0.0 : 1.0, state,
                       std::nullopt});
    }
  }
  if (out.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " shows no sensors");
  co_return out;
}

Async<std::vector<BackgroundCopy>> RedfishBmc::backgroundCopies() {
  CO_TRY(at, co_await places());
  std::vector<BackgroundCopy> out;
  if (!at.quirks.background_copies) co_return out;
  CO_TRY(chassis, co_await members(at.chassis, kMaxChassis, RedfishSession::kRequestTimeout));
  if (!chassis.unread.empty())
    co_return fail(chassis.unread.front().why);  // it may be the one that is copying
  for (const Member& box : chassis.found) {
    const auto status = textAt(box.json, kCopyStatus);
    if (!status.empty())
      out.push_back(
          {textAt(box.json, "Id"), status, status == "InProgress" || status == "Pending"});
  }
  co_return out;
}

Async<void> RedfishBmc::commitImage(std::string component) {
  CO_TRY(at, co_await places());
  const auto& globs = at.quirks.commit;
  const bool wanted = std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return lifecycle::matches(glob, component);
  });
  if (!wanted) co_return fail(ErrorCode::NotFound, component + " needs no commit");
  CO_TRY(service, co_await session_->get(at.update_service));
  const Json* action = find(service.body, "Actions/Oem/#NvidiaUpdateService.CommitImage");
  if (!action) co_return fail(ErrorCode::NotFound, address() + " offers no commit of images");
  CO_TRY(inventory, co_await readInventory());
  const auto uri = inventory.uri_by_name.find(component);
  if (uri == inventory.uri_by_name.end())
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} does not list {} now", address(), component));
  Json body = Json::object();
  body["Targets"] = Json::array_t(1, uri->second);
  CO_TRY_OK(co_await session_->post(linkAt(*action, "target"), std::move(body)));
  co_return Result<void>();
}

}  // namespace muster::bmc
