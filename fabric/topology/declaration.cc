// SPDX-License-Identifier: Apache-2.0
#include "fabric/topology/declaration.h"

#include "base/diagnostic.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster::fabric {

namespace {

struct ExpandedTopology {
  const inventory::Fabric* fabric;
  Topology declared;
};

constexpr std::size_t kNamed = 3;

/// "leaf-su1-r0, leaf-su1-r1, leaf-su1-r2 and 9 more"
std::string some(const std::vector<std::string>& names) {
  const auto shown = std::min(names.size(), kNamed);
  return fmt::format(
      "{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "");
}

/// Names that both have, switches or HCAs.
std::vector<std::string> common(const Topology& a, const Topology& b, bool switches) {
  std::vector<std::string> out;
  for (const auto& [name, device] : a.devices)
    if (device.is_switch == switches && b.devices.contains(name)) out.push_back(name);
  return out;
}

/// HCAs of nodes that hang here, and belong elsewhere by their profile's rails.
std::vector<std::string> ofOthers(const inventory::Cluster& cluster,
                                  const inventory::Fabric& fabric, const Topology& declared) {
  std::vector<std::string> out;
  for (const auto& [name, device] : declared.devices) {
    const auto space = name.find(' ');
    if (device.is_switch || space == std::string::npos) continue;
    const auto* node = cluster.findNode(NodeName(std::string(hostOf(name))));
    if (!node) continue;
    const auto& profile = cluster.profileOf(*node);
    const auto hcas = inventory::hcasOn(profile, fabric);
    if (!profile.other_fabrics.empty() && inventory::isOn(profile, fabric.name) &&
        std::find(hcas.begin(), hcas.end(), name.substr(space + 1)) == hcas.end())
      out.push_back(name);
  }
  return out;
}

/// What two fabrics have in common, and HCAs that are cabled to another fabric than their rail
/// says.
void checkApart(const inventory::Cluster& cluster, const std::vector<ExpandedTopology>& expanded,
                Diagnostics& diagnostics) {
  if (expanded.size() < 2) return;
  for (std::size_t b = 0; b < expanded.size(); ++b) {
    const auto& [fabric, declared] = expanded[b];
    if (const auto names = ofOthers(cluster, *fabric, declared); !names.empty())
      diagnostics.error(fabric->where,
                        fmt::format("fabric {} has cables of {}, which no rail of the profile "
                                    "puts on it",
                                    fabric->name, some(names)),
                        "correct the cable, or fabric of the rail");
    for (std::size_t a = 0; a < b; ++a) {
      const auto& [other, others] = expanded[a];
      if (const auto names = common(declared, others, true); !names.empty())
        diagnostics.error(fabric->where,
                          fmt::format("the fabrics {} and {} both have the switch {}", other->name,
                                      fabric->name, some(names)),
                          "a switch is in one fabric; names that a shape gives differ with "
                          "switch_prefix: st-");
      if (const auto names = common(declared, others, false); !names.empty())
        diagnostics.error(fabric->where,
                          fmt::format("the fabrics {} and {} both have cables of the HCA {}",
                                      other->name, fabric->name, some(names)),
                          "an HCA is cabled to one fabric: name another one of the host");
    }
  }
}

constexpr std::string_view kAsPlanned =
    "`muster fabric plan` lists the devices of a fabric and their ports";

/// What is excused and does not exist is a typo, or an extra device by its found name: it says
/// nothing of what is declared.
void checkExclusions(const inventory::Fabric& fabric, const Topology& declared,
                     Diagnostics& diagnostics) {
  for (const auto& excluded : fabric.exclude) {
    const auto device = declared.devices.find(excluded.device);
    if (device == declared.devices.end())
      diagnostics.warning(
          fabric.where,
          fmt::format("fabric {}: exclude names {}, which is no declared device of it", fabric.name,
                      excluded.device),
          std::string(kAsPlanned));
    else if (excluded.port > device->second.ports)
      diagnostics.warning(
          fabric.where,
          fmt::format("fabric {}: exclude names port {} of {}, which has {}", fabric.name,
                      excluded.port, excluded.device, device->second.ports),
          std::string(kAsPlanned));
  }
}

void checkSwitchRows(const inventory::Fabric& fabric, const Topology& declared,
                     Diagnostics& diagnostics) {
  for (const auto& row : fabric.switches)
    for (const auto& name : row.names) {
      const auto device = declared.devices.find(name);
      if (device != declared.devices.end() && device->second.is_switch) continue;
      diagnostics.warning(fabric.where,
                          fmt::format("fabric {}: switches has a row for {}, which is no declared "
                                      "switch of it: its rack and firmware are not used",
                                      fabric.name, name),
                          std::string(kAsPlanned));
      break;  // one message a row
    }
}

}  // namespace

void checkDeclarations(const inventory::Cluster& cluster, Diagnostics& diagnostics) {
  std::vector<ExpandedTopology> expanded;
  for (const auto* fabric : inventory::managedFabrics(cluster)) {
    auto declared = declaredTopology(cluster, *fabric);
    if (!declared) {
      diagnostics.error(declared.error().where().value_or(fabric->where), declared.error().text());
      continue;
    }
    checkExclusions(*fabric, *declared, diagnostics);
    checkSwitchRows(*fabric, *declared, diagnostics);
    expanded.push_back({fabric, std::move(*declared)});
  }
  checkApart(cluster, expanded, diagnostics);
}

}  // namespace muster::fabric
