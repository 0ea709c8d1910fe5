// SPDX-License-Identifier: Apache-2.0
#include "provision/identity.h"

#include "inventory/model/bmc_identity.h"
#include "inventory/model/node.h"
#include "provision/facets.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::provision {
namespace {

using bmc::IdentityPlace;
using bmc::ReportedIdentity;
using Kind = inventory::AcceptedIdentity::Kind;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool isUuid(Kind kind) {
  return kind == Kind::SystemUuid || kind == Kind::ManagerUuid || kind == Kind::ServiceUuid;
}

/// Whether this kind is about that resource.
bool isAt(Kind kind, IdentityPlace place) {
  switch (kind) {
    case Kind::ChassisSerial:
      return place == IdentityPlace::Chassis || place == IdentityPlace::Part;
    case Kind::SystemUuid:
      return place == IdentityPlace::System;
    case Kind::ManagerSerial:
    case Kind::ManagerUuid:
      return place == IdentityPlace::Manager;
    case Kind::ServiceUuid:
      return place == IdentityPlace::Service;
  }
  return false;
}

/// What the BMC reports of this kind, each with its resource.
std::vector<std::pair<std::string, std::string>> valuesOf(Kind kind,
                                                          const bmc::SystemInfo& system) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& each : system.reported) {
    const auto& value = isUuid(kind) ? each.uuid : each.serial;
    if (isAt(kind, each.place) && !value.empty()) out.emplace_back(value, each.resource);
  }
  return out;
}

/// Why the machine is not what the operator accepts; "" when it is.
std::string refusal(const inventory::AcceptedIdentity& accepted, const bmc::SystemInfo& system) {
  const auto values = valuesOf(accepted.kind, system);
  std::string shown;
  for (const auto& [value, resource] : values) {
    const bool same = isUuid(accepted.kind) ? lower(value) == lower(accepted.value)
                                            : bmc::sameText(value, accepted.value);
    if (same) return {};
    shown += fmt::format("{}{} ({})", shown.empty() ? "" : ", ", value, resource);
  }
  return fmt::format("the inventory accepts {}, the BMC reports {}", accepted.str(),
                     shown.empty() ? "none" : shown);
}

/// What an operator could accept of what is reported: the serial of a chassis or a part first.
std::string acceptable(const bmc::SystemInfo& system) {
  for (const auto kind : {Kind::ChassisSerial, Kind::ManagerSerial, Kind::SystemUuid,
                          Kind::ManagerUuid, Kind::ServiceUuid})
    if (const auto values = valuesOf(kind, system); !values.empty())
      return inventory::AcceptedIdentity{kind, values.front().first}.str();
  return {};
}

}  // namespace

std::string identityOf(const inventory::Node& node, const bmc::SystemInfo& system) {
  const auto same = [&](const std::string& text) {
    const auto mac = Mac::parse(text);
    return mac && *mac == node.mac;
  };
  for (const auto& accepted : node.bmc.accept)
    if (const auto why = refusal(accepted, system); !why.empty()) return "no: " + why;

  const bool both = !node.serial.empty() && !system.serial.empty();
  const bool of_machine = system.serial_place <= IdentityPlace::Chassis;
  const bool fits =
      both && (system.serial == node.serial ||
               (!of_machine && std::ranges::any_of(system.reported, [&](const auto& each) {
                 return each.serial == node.serial;
               })));
  if (both && of_machine && !fits)
    return fmt::format("no: its serial is {}, the inventory says {}", system.serial, node.serial);
  if (!system.macs.empty() && std::ranges::none_of(system.macs, same))
    return fmt::format("no: none of its NICs has the MAC {}", node.mac.str());
  // What can be booted from is not all that there is: a MAC that is missing there says nothing.
  const bool boots = std::ranges::any_of(system.boot_macs, same);
  if (fits || !system.macs.empty() || boots || !node.bmc.accept.empty()) return std::string(kYes);

  std::string serial = "and no serial";
  if (!system.serial.empty() && of_machine)
    serial = fmt::format("and its serial {} is not in the inventory", system.serial);
  else if (!system.serial.empty())
    serial = fmt::format("and no serial but {} of a part",
                         system.serial);  // which may be moved into another machine
  if (!system.boot_macs.empty())
    return fmt::format("unknown: none of its boot options has the MAC {}, {}", node.mac.str(),
                       serial);
  return fmt::format("unknown: it reports no MAC, {}", serial);
}

std::string identityAdvice(const inventory::Node& node, const bmc::SystemInfo& system,
                           const std::string& identity) {
  if (!identity.starts_with("unknown"))
    return "find out which machine is behind that address, then correct the inventory or the "
           "cabling";
  if (!system.serial.empty() && system.serial_place <= IdentityPlace::Chassis)
    return fmt::format("if the label of {} says so too, declare serial: {} for it in the inventory",
                       node.name.str(), system.serial);
  if (const auto accept = acceptable(system); !accept.empty())
    return fmt::format(
        "if you know that this is {}, say what identifies it: bmc: {{url: {}, accept: {}}} in the "
        "inventory (bmc_accept in a CSV)",
        node.name.str(), node.bmc.url, accept);
  return "muster flashes and images no machine that it cannot identify: make the BMC report its "
         "serial or its MACs (BMC update, asset settings)";
}

nlohmann::json identityEvidence(const bmc::SystemInfo& system) {
  nlohmann::json out{{"serial", system.serial},
                     {"macs", system.macs},
                     {"manufacturer", system.manufacturer},
                     {"model", system.model}};
  if (!system.boot_macs.empty()) out["boot_macs"] = system.boot_macs;
  for (const auto& each : system.reported) {
    nlohmann::json row{{"place", std::string(bmc::word(each.place))}, {"resource", each.resource}};
    for (const auto& [name, value] :
         {std::pair{"manufacturer", &each.manufacturer}, std::pair{"model", &each.model},
          std::pair{"serial", &each.serial}, std::pair{"uuid", &each.uuid}})
      if (!value->empty()) row[name] = *value;
    out["reported"].push_back(std::move(row));
  }
  return out;
}

}  // namespace muster::provision
