// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/sensors.h"

#include <algorithm>
#include <array>
#include <span>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxChassis = 128;
constexpr std::size_t kMaxSensors = 1'024;  ///< of one chassis
constexpr std::size_t kMaxReadings = 4'096;
constexpr std::size_t kMaxLeakDetectors = 64;
constexpr std::size_t kMaxSupplies = 64;  ///< of one chassis
constexpr std::size_t kMaxReports = 64;
/// Sensors that a look reads one by one: with a chassis' lists and a report, some thirty requests.
constexpr std::size_t kSingles = 24;
constexpr std::size_t kFirstSingles = 128;  ///< … the first look, which learns units and limits
constexpr auto kPlanFor = 6h;               ///< a chassis that was added is noticed by then
constexpr auto kPlanWithGapsFor = 10min;  ///< where some could not be read: a tray without its host
constexpr auto kStaleAfter = 30min;  ///< what could not be read for so long is not said any more
constexpr std::size_t kMaxRemembered = 512;  ///< resources
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

/// The sensor that a value of a metric report is of: ".../Sensors/X" or ".../Sensors/X#/Reading".
std::string sensorOf(const Json& value) {
  auto property = textAt(value, "MetricProperty");
  return property.substr(0, property.find('#'));
}

}  // namespace

Result<void> RedfishSensors::takeLast(const std::string& uri, Error why, Look& look) {
  if (why.code() == ErrorCode::Denied) return fail(std::move(why));
  const auto found = last_.find(uri);
  if (found != last_.end() && resources_.clock().steady() - found->second.first <= kStaleAfter)
    for (auto reading : found->second.second) {
      reading.stale = true;
      look.out.push_back(std::move(reading));
    }
  look.unread = std::move(why);
  return {};
}

RedfishSensors::Readings RedfishSensors::remember(const std::string& uri, Readings readings) {
  if (last_.size() < kMaxRemembered || last_.contains(uri))
    last_[uri] = {resources_.clock().steady(), readings};
  return readings;
}

Async<std::shared_ptr<RedfishSensors::Plan>> RedfishSensors::planNow() {
  CO_TRY(at, co_await resources_.uris());
  const auto now = resources_.clock().steady();
  if (const auto* known = plan_.get(resources_); known && now - (*known)->made < kPlanFor)
    co_return *known;
  CO_TRY(chassis, co_await resources_.members(at.chassis, kMaxChassis));
  auto plan = std::make_shared<Plan>();
  plan->made = chassis.unread.empty() ? now : now - kPlanFor + kPlanWithGapsFor;
  for (const Member& box : chassis.found)
    plan->boxes.push_back({linkAt(box.json, "Thermal"), linkAt(box.json, "Power"),
                           linkAt(box.json, "Sensors"), linkAt(box.json, "PowerSubsystem"),
                           linkAt(box.json, "ThermalSubsystem")});
  plan_.set(resources_, plan);
  co_return plan;
}

/// Expanded where that works, else one by one.
Async<std::vector<Member>> RedfishSensors::membersOf(Plan& plan, std::string collection,
                                                     std::size_t limit) {
  CO_TRY(at, co_await resources_.uris());
  if (plan.expand) {
    CO_TRY(whole, co_await resources_.expanded(collection, limit, at.quirks.inventory_read));
    if (whole) co_return std::move(*whole);
  }
  CO_TRY(listed, co_await resources_.members(collection, limit, at.quirks.inventory_read));
  if (!listed.unread.empty()) co_return fail(std::move(listed.unread.front().why));
  co_return std::move(listed.found);
}

Async<void> RedfishSensors::readOldLists(Box& box, Look& look) {
  for (const auto& [link, lists] :
       {std::pair<std::string*, std::span<const OldList>>{&box.thermal, kThermal},
        {&box.power, kPower}}) {
    if (link->empty()) continue;
    Readings readings;
    auto resource = co_await resources_.session().get(*link);
    if (resource) {
      addOld(resource->body, lists, readings);
      readings = remember(*link, std::move(readings));
    } else if (resource.error().code() == ErrorCode::NotFound) {
      link->clear();
    } else {
      CO_TRY_OK(takeLast(*link, std::move(resource.error()), look));
    }
    std::ranges::move(readings, std::back_inserter(look.out));
  }
  co_return Result<void>();
}

/// A collection whose sensors all stand in another chassis' lists is a copy of them (DGX H100) and
/// is read once.
Async<void> RedfishSensors::readSensors(Plan& plan, Box& box, Look& look) {
  CO_TRY(at, co_await resources_.uris());
  const auto isShown = [&look](const std::string& uri) {
    return look.shown.contains(lastSegment(uri));
  };
  if (plan.expand) {
    auto sensors = co_await resources_.expanded(box.sensors, kMaxSensors, at.quirks.inventory_read);
    if (!sensors) {
      CO_TRY_OK(takeLast(box.sensors, std::move(sensors.error()), look));
      co_return Result<void>();
    }
    // A service that drops what it must not drop: its members are asked for one by one.
    const auto isWhole = [](const Member& sensor) {
      return sensor.json.contains("Reading") || sensor.json.contains("Status");
    };
    if (*sensors && std::ranges::all_of(**sensors, isWhole)) {
      if (!(*sensors)->empty() && std::ranges::all_of(**sensors, isShown, &Member::uri)) {
        box.sensors.clear();
        co_return Result<void>();
      }
      Readings readings;
      for (const Member& sensor : **sensors)
        if (auto reading = readingOf(sensor.json)) {
          if (reading->name.empty()) reading->name = lastSegment(sensor.uri);
          readings.push_back(std::move(*reading));
        }
      readings = remember(box.sensors, std::move(readings));
      std::ranges::move(readings, std::back_inserter(look.out));
      co_return Result<void>();
    }
    plan.expand = false;
  }
  auto listed = plan.listed.find(box.sensors);
  if (listed == plan.listed.end()) {
    auto uris = co_await resources_.listed(box.sensors, kMaxSensors);
    if (!uris && uris.error().code() == ErrorCode::Denied) co_return fail(std::move(uris.error()));
    if (!uris) {  // asked for again at the next look
      look.unread = std::move(uris.error());
      co_return Result<void>();
    }
    listed = plan.listed.emplace(box.sensors, std::move(*uris)).first;
  }
  if (!listed->second.empty() && std::ranges::all_of(listed->second, isShown))
    box.sensors.clear();
  else
    std::ranges::copy(listed->second, std::back_inserter(look.wanted));
  co_return Result<void>();
}

/// By the reports that hold any of them; which these are is found out once.
Async<std::map<std::string, double>> RedfishSensors::reported(
    Plan& plan, const std::vector<std::string>& wanted) {
  std::map<std::string, double> out;
  const std::set<std::string> known(wanted.begin(), wanted.end());
  const auto take = [&](const Json& report) {
    std::size_t taken = 0;
    const Json* values = find(report, "MetricValues");
    if (!values || !values->is_array()) return taken;
    for (const Json& value : *values) {
      const auto uri = sensorOf(value);
      const auto number = numberAt(value, "MetricValue");
      const bool stale = boolAt(value, "Oem/Nvidia/MetricValueStale").value_or(false);
      if (!number || stale || !known.contains(uri)) continue;
      out[uri] = *number;
      ++taken;
    }
    return taken;
  };
  if (!plan.reports) {
    std::vector<std::string> found;
    if (wanted.size() > kSingles) {
      CO_TRY(root, co_await resources_.session().get("/redfish/v1/"));
      const auto service = linkAt(root.body, "TelemetryService");
      auto telemetry = co_await resources_.session().get(
          service.empty() ? std::string("/redfish/v1/TelemetryService") : service);
      const auto link = telemetry ? linkAt(telemetry->body, "MetricReports") : std::string();
      auto reports = link.empty() ? Result<Members>(Members())
                                  : co_await resources_.members(link, kMaxReports);
      if (reports)
        for (const Member& report : reports->found)
          if (take(report.json) > 0) found.push_back(report.uri);
    }
    plan.reports = std::move(found);
    co_return out;
  }
  for (const auto& uri : *plan.reports) {
    auto report = co_await resources_.session().get(uri);
    if (!report && report.error().code() == ErrorCode::Denied)
      co_return fail(std::move(report.error()));
    if (report) take(report->body);
  }
  co_return out;
}

/// What looked bad when it was read last comes first, then what was never read, then the oldest.
Async<void> RedfishSensors::readSingles(Plan& plan, Look& look) {
  if (look.wanted.empty()) co_return Result<void>();
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(values, co_await reported(plan, look.wanted));
  const auto urgency = [&plan](const std::string& uri) {
    const auto& single = plan.singles[uri];
    const bool bad =
        single.reading && !single.reading->health.empty() && single.reading->health != "OK";
    return std::pair(!bad, single.read_at);
  };
  const std::size_t most = plan.singles.empty() ? kFirstSingles : kSingles;
  auto turn = look.wanted;
  std::ranges::stable_sort(turn, {}, urgency);
  if (turn.size() > most) turn.resize(most);
  const auto now = resources_.clock().steady();
  auto busy = RedfishSession::Busy::Wait;
  for (const auto& uri : turn) {
    auto sensor = co_await resources_.session().get(uri, at.quirks.inventory_read, busy);
    auto& single = plan.singles[uri];
    if (sensor) {
      single = {readingOf(sensor->body), now};
      if (single.reading && single.reading->name.empty()) single.reading->name = lastSegment(uri);
    } else if (sensor.error().code() == ErrorCode::Denied) {
      co_return fail(std::move(sensor.error()));
    } else if (sensor.error().code() == ErrorCode::NotFound) {
      single = {std::nullopt, now};
    } else {  // a baseboard whose host is off has fifty of them
      single.read_at = now;
      busy = RedfishSession::Busy::Answer;
      look.unread = std::move(sensor.error());
    }
  }
  for (const auto& uri : look.wanted) {
    const auto& single = plan.singles[uri];
    const auto value = values.find(uri);
    auto reading = single.reading;
    if (value != values.end()) {
      if (!reading) reading = SensorReading{lastSegment(uri), "", "", 0, "", std::nullopt};
      reading->value = value->second;
      if (single.read_at != now) reading->health.clear();  // of another time
    }
    if (reading) look.out.push_back(std::move(*reading));
  }
  co_return Result<void>();
}

/// A supply that says nothing of its own health has that of its redundancy group (DGX H100).
Async<void> RedfishSensors::readSupplies(Plan& plan, Look& look) {
  for (Box& box : plan.boxes) {
    if (box.power_subsystem.empty()) continue;
    auto resource = co_await resources_.session().get(box.power_subsystem);
    const auto uri = box.power_subsystem;
    auto collection = resource ? linkAt(resource->body, "PowerSupplies") : std::string();
    if (collection.empty()) collection = uri + "/PowerSupplies";
    auto supplies = resource ? co_await membersOf(plan, std::move(collection), kMaxSupplies)
                             : Result<std::vector<Member>>(fail(resource.error()));
    if (!supplies && supplies.error().code() != ErrorCode::NotFound) {
      CO_TRY_OK(takeLast(uri, std::move(supplies.error()), look));
      continue;
    }
    if (!supplies || supplies->empty()) {
      box.power_subsystem.clear();  // most chassis have one, and no supplies
      continue;
    }
    std::map<std::string, std::string> group_health;
    const Json* groups = find(resource->body, "PowerSupplyRedundancy");
    for (const Json& group : groups && groups->is_array() ? *groups : Json::array())
      for (const auto& member : linksAt(group, "RedundancyGroup"))
        group_health[member] = textAt(group, "Status/Health");
    Readings readings;
    for (const Member& supply : *supplies) {
      auto health = textAt(supply.json, "Status/Health");
      if (health.empty()) health = group_health[supply.uri];
      if (!isAbsent(supply.json) && !health.empty())
        readings.push_back(
            {nameOf(supply.json), std::string(kSupply), "", 0, health, std::nullopt});
    }
    readings = remember(uri, std::move(readings));
    std::ranges::move(readings, std::back_inserter(look.out));
  }
  co_return Result<void>();
}

Async<void> RedfishSensors::readLeakDetectors(Plan& plan, Look& look) {
  for (Box& box : plan.boxes) {
    if (box.thermal_subsystem.empty()) continue;
    const auto collection = box.thermal_subsystem + "/LeakDetection/LeakDetectors";
    auto detectors = co_await membersOf(plan, collection, kMaxLeakDetectors);
    if (!detectors && detectors.error().code() != ErrorCode::NotFound) {
      CO_TRY_OK(takeLast(collection, std::move(detectors.error()), look));
      continue;
    }
    if (!detectors || detectors->empty()) {
      box.thermal_subsystem.clear();  // most machines have no liquid
      continue;
    }
    Readings readings;
    for (const Member& detector : *detectors) {
      const auto state = textAt(detector.json, "DetectorState");
      if (!state.empty())
        readings.push_back({nameOf(detector.json), "LeakDetector", "", state == "OK" ? 0.0 : 1.0,
                            state, std::nullopt});
    }
    readings = remember(collection, std::move(readings));
    std::ranges::move(readings, std::back_inserter(look.out));
  }
  co_return Result<void>();
}

Async<std::vector<SensorReading>> RedfishSensors::sensors() {
  CO_TRY(plan, co_await planNow());
  Look look;
  std::vector<Box*> rest;  // whose chassis has none of the older lists
  for (Box& box : plan->boxes) {
    const auto before = look.out.size();
    CO_TRY_OK(co_await readOldLists(box, look));
    if (look.out.size() == before && !box.sensors.empty()) rest.push_back(&box);
  }
  for (const auto& reading : look.out) look.shown.insert(reading.name);
  for (Box* box : rest) CO_TRY_OK(co_await readSensors(*plan, *box, look));
  CO_TRY_OK(co_await readSingles(*plan, look));
  const bool supplies_shown = std::ranges::any_of(
      look.out, [](const SensorReading& reading) { return reading.kind == kSupply; });
  if (!supplies_shown) CO_TRY_OK(co_await readSupplies(*plan, look));
  CO_TRY_OK(co_await readLeakDetectors(*plan, look));
  if (look.out.empty() && look.unread) co_return fail(std::move(*look.unread));
  if (look.out.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " shows no sensors");
  if (look.out.size() > kMaxReadings) look.out.resize(kMaxReadings);
  co_return std::move(look.out);
}

}  // namespace muster::bmc
