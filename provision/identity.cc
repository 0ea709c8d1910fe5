// SPDX-License-Identifier: Apache-2.0
#include "provision/identity.h"

#include "inventory/model/node.h"
#include "provision/facets.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::provision {

std::string identityOf(const inventory::Node& node, const bmc::SystemInfo& system) {
  const auto same = [&](const std::string& text) {
    const auto mac = Mac::parse(text);
    return mac && *mac == node.mac;
  };
  const bool serials = !node.serial.empty() && !system.serial.empty();
  if (serials && system.serial != node.serial)
    return fmt::format("no: its serial is {}, the inventory says {}", system.serial, node.serial);
  if (!system.macs.empty() && std::ranges::none_of(system.macs, same))
    return fmt::format("no: none of its NICs has the MAC {}", node.mac.str());
  if (serials || !system.macs.empty()) return std::string(kYes);
  const auto serial = system.serial.empty()
                          ? std::string("and no serial")
                          : fmt::format("and its serial {} is not in the inventory", system.serial);
  return fmt::format("unknown: it reports no MAC, {}", serial);
}

std::string identityAdvice(const inventory::Node& node, const bmc::SystemInfo& system,
                           const std::string& identity) {
  if (!identity.starts_with("unknown"))
    return "find out which machine is behind that address, then correct the inventory or the "
           "cabling";
  if (system.serial.empty())
    return "muster flashes and images no machine that it cannot identify: make the BMC report its "
           "serial or its MACs (BMC update, asset settings)";
  return fmt::format("if the label of {} says so too, declare serial: {} for it in the inventory",
                     node.name.str(), system.serial);
}

}  // namespace muster::provision
