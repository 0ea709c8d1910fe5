// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/identity.h"

#include "base/ids.h"

#include <algorithm>
#include <array>

namespace muster::bmc {
namespace {

constexpr std::size_t kMacDigits = 12;

/// ChassisType of what holds a whole machine; a Component, Module or Zone is a part of one, a Rack
/// holds many.
constexpr std::array<std::string_view, 8> kEnclosing = {
    "RackMount", "StandAlone", "Enclosure", "Blade", "Sled", "Shelf", "Drawer", "Other"};

/// Of a Model or Manufacturer: "N/A" is none.
std::string realText(const std::string& text) { return realSerial(text); }

std::string realUuid(const std::string& uuid) {
  return uuid.size() == 36 && uuid.find_first_not_of("0-") != std::string::npos ? uuid
                                                                                : std::string();
}

ReportedIdentity identityIn(IdentityPlace place, const std::string& uri, const Json& json) {
  return {place,
          uri,
          realText(textAt(json, "Manufacturer")),
          realText(textAt(json, "Model")),
          realSerial(textAt(json, "SerialNumber")),
          realUuid(textAt(json, "UUID"))};
}

}  // namespace

bool sameResource(std::string_view a, std::string_view b) {
  while (a.ends_with('/')) a.remove_suffix(1);
  while (b.ends_with('/')) b.remove_suffix(1);
  return a == b;
}

ReportedIdentity systemIdentity(const std::string& uri, const Json& system) {
  return identityIn(IdentityPlace::System, uri, system);
}

ReportedIdentity managerIdentity(const std::string& uri, const Json& manager) {
  auto out = identityIn(IdentityPlace::Manager, uri, manager);
  out.manufacturer.clear();  // of the BMC, not of the machine: "OpenBmc"
  out.model.clear();
  return out;
}

ReportedIdentity serviceIdentity(const Json& service_root) {
  return {IdentityPlace::Service,
          "/redfish/v1/",
          textAt(service_root, "Vendor"),
          realText(textAt(service_root, "Product")),
          {},
          realUuid(textAt(service_root, "UUID"))};
}

ReportedIdentity chassisIdentity(const std::string& uri, const Json& chassis,
                                 const std::string& system_uri) {
  const auto systems = linksAt(chassis, "Links/ComputerSystems");
  const bool own = std::ranges::all_of(
      systems, [&](const std::string& link) { return sameResource(link, system_uri); });
  const auto type = textAt(chassis, "ChassisType");
  const bool encloses = std::ranges::find(kEnclosing, type) != kEnclosing.end();
  return identityIn(encloses && own ? IdentityPlace::Chassis : IdentityPlace::Part, uri, chassis);
}

std::vector<std::string> macsOfBootOptions(const std::vector<Json>& options) {
  constexpr std::string_view kMac = "/MAC(";
  std::vector<std::string> out;
  for (const Json& option : options) {
    const auto path = textAt(option, "UefiDevicePath");
    const auto at = path.find(kMac);
    if (at == std::string::npos || path.find("/USB(") < at) continue;
    const auto mac = Mac::parse(path.substr(at + kMac.size(), kMacDigits));
    if (mac && *mac != Mac() && std::ranges::find(out, mac->str()) == out.end())
      out.push_back(mac->str());
  }
  return out;
}

}  // namespace muster::bmc
