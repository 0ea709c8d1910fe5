// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::burn {
namespace {

using nlohmann::json;

/// Bad comes before unknown, unknown before good.
int rank(Outcome outcome) {
  switch (outcome) {
    case Outcome::Pass:
      return 0;
    case Outcome::NoData:
      return 1;
    case Outcome::Timeout:
    case Outcome::Slow:
      return 2;
    case Outcome::Error:
      return 3;
    case Outcome::Fail:
      return 4;
  }
  return 4;
}

template <class Parts, class Get>
Outcome worst(const Parts& parts, Get get) {
  if (parts.empty()) return Outcome::NoData;
  Outcome outcome = Outcome::Pass;
  for (const auto& part : parts)
    if (rank(get(part)) > rank(outcome)) outcome = get(part);
  return outcome;
}

json toJson(const Telemetry& seen) {
  json out{{"at_seconds", seen.at_seconds}};
  const auto put = [&out](const char* key, const auto& value) {
    if (value) out[key] = *value;
  };
  put("watts", seen.watts), put("limit_watts", seen.limit_watts), put("clock_mhz", seen.clock_mhz),
      put("temperature_c", seen.temperature_c);
  put("throttle_power_ns", seen.throttle_power_ns),
      put("throttle_thermal_ns", seen.throttle_thermal_ns),
      put("throttle_hardware_ns", seen.throttle_hardware_ns);
  put("throttle_reasons", seen.throttle_reasons), put("ecc_corrected", seen.ecc_corrected),
      put("ecc_uncorrected", seen.ecc_uncorrected);
  return out;
}

json toJson(const StageReport& stage) {
  json out{{"name", stage.name},
           {"outcome", toString(stage.outcome)},
           {"findings", stage.findings},
           {"values", stage.values},
           {"seed", stage.seed}};
  if (!stage.golden.empty()) out["golden"] = stage.golden;
  if (!stage.reference.empty()) out["reference"] = stage.reference, out["product"] = stage.product;
  return out;
}

}  // namespace

std::string_view toString(Outcome outcome) {
  switch (outcome) {
    case Outcome::Pass:
      return "pass";
    case Outcome::Fail:
      return "fail";
    case Outcome::Timeout:
      return "timeout";
    case Outcome::NoData:
      return "no-data";
    case Outcome::Error:
      return "error";
    case Outcome::Slow:
      return "slow";
  }
  return "error";
}

void StageReport::lacks(Outcome why, std::string text) {
  if (outcome != Outcome::Fail) outcome = why;
  findings.push_back(std::move(text));
}

Outcome DeviceReport::outcome() const {
  return worst(stages, [](const StageReport& stage) { return stage.outcome; });
}

Outcome Report::outcome() const {
  return worst(devices, [](const DeviceReport& device) { return device.outcome(); });
}

json toJson(const Report& report) {
  json devices = json::array();
  for (const auto& device : report.devices) {
    const auto& id = device.identity;
    json stages = json::array(), telemetry = json::array();
    for (const auto& stage : device.stages) stages.push_back(toJson(stage));
    for (const auto& seen : device.telemetry) telemetry.push_back(toJson(seen));
    devices.push_back({{"kind", id.kind},
                       {"model", id.model},
                       {"serial", id.serial},
                       {"place", id.place},
                       {"units", id.units},
                       {"library", id.library},
                       {"outcome", toString(device.outcome())},
                       {"stages", std::move(stages)},
                       {"telemetry", std::move(telemetry)}});
  }
  return {{"format", "muster-burn/1"},
          {"seed", report.seed},
          {"outcome", toString(report.outcome())},
          {"devices", std::move(devices)}};
}

std::string toText(const Report& report) {
  std::string text;
  for (const auto& device : report.devices) {
    text += fmt::format("{} {} (serial {}): {}\n", device.identity.place, device.identity.model,
                        device.identity.serial.empty() ? "unknown" : device.identity.serial,
                        toString(device.outcome()));
    for (const auto& stage : device.stages) {
      text +=
          fmt::format("  {:<24} {:<8} seed {}", stage.name, toString(stage.outcome), stage.seed);
      for (const auto& [key, value] : stage.values) text += fmt::format("  {} {:.6g}", key, value);
      text += '\n';
      for (const auto& finding : stage.findings) text += "    " + finding + '\n';
    }
  }
  return text + fmt::format("{} devices: {}\n", report.devices.size(), toString(report.outcome()));
}

}  // namespace muster::burn
