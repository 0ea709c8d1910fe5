// SPDX-License-Identifier: Apache-2.0
#include "fabric/topology/declaration.h"

#include "base/diagnostic.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"
#include "wire/links/bit_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

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

/// Of a row; of the fabric where nobody has read it from a file.
const SourceRef& placeOf(const SourceRef& row, const inventory::Fabric& fabric) {
  return row.file.empty() ? fabric.where : row;
}

/// Devices that cables connect, as sets of names; devices without a cable are in none.
std::vector<std::vector<std::string_view>> connectedParts(const Topology& topology) {
  std::unordered_map<std::string_view, std::size_t> ids;
  std::vector<std::string_view> names;
  for (const auto& [name, device] : topology.devices) {
    ids.emplace(name, names.size());
    names.push_back(name);
  }
  std::vector<std::size_t> above(names.size());
  for (std::size_t i = 0; i < above.size(); ++i) above[i] = i;
  const auto top = [&above](std::size_t id) {
    while (above[id] != id) id = above[id] = above[above[id]];
    return id;
  };
  for (const auto& link : topology.links)
    above[top(ids.at(link.a.node))] = top(ids.at(link.b.node));
  std::map<std::size_t, std::vector<std::string_view>> parts;
  for (std::size_t id = 0; id < names.size(); ++id) parts[top(id)].push_back(names[id]);
  std::vector<std::vector<std::string_view>> out;
  for (auto& [id, part] : parts)
    if (part.size() > 1) out.push_back(std::move(part));
  std::ranges::stable_sort(out, std::greater(), &std::vector<std::string_view>::size);
  return out;
}

/// A switch of it, if it has one.
std::string_view namedAfter(const std::vector<std::string_view>& part, const Topology& topology) {
  const auto found = std::ranges::find_if(part, [&topology](std::string_view name) {
    return topology.devices.at(std::string(name)).is_switch;
  });
  return found == part.end() ? part.front() : *found;
}

/// An InfiniBand fabric is one subnet: its subnet manager sees one island alone. With RoCE each
/// rail may be a network of its own, which is said all the same.
void checkConnected(const inventory::Fabric& fabric, const Topology& declared,
                    Diagnostics& diagnostics) {
  const auto parts = connectedParts(declared);
  if (parts.size() < 2) return;
  const std::set<std::string_view> smaller(parts[1].begin(), parts[1].end());
  const auto cable =
      std::ranges::find_if(fabric.cables, [&smaller](const inventory::FabricCable& each) {
        return smaller.contains(each.from_node) || smaller.contains(each.to_node);
      });
  const auto& where = cable == fabric.cables.end() ? fabric.where : placeOf(cable->where, fabric);
  auto text = fmt::format(
      "fabric {}: its cables make {} islands that nothing connects: that of {} ({} devices) and "
      "that of {} ({})",
      fabric.name, parts.size(), namedAfter(parts[0], declared), parts[0].size(),
      namedAfter(parts[1], declared), parts[1].size());
  std::string advice =
      "add the missing cables between switches, or declare each island as a fabric";
  if (fabric.roce)
    diagnostics.warning(where, std::move(text), std::move(advice));
  else
    diagnostics.error(where, std::move(text), std::move(advice));
}

/// Nodes on the fabric at none of whose HCAs a cable ends. A found fabric may name hosts by other
/// names: that is another rule's.
void checkCabled(const inventory::Cluster& cluster, const inventory::Fabric& fabric,
                 const Topology& declared, Diagnostics& diagnostics) {
  std::set<std::string_view> cabled;
  for (const auto& link : declared.links)
    for (const auto* end : {&link.a, &link.b}) cabled.insert(hostOf(end->node));
  const auto hosts = hostsOn(cluster, fabric);
  std::vector<std::string> bare;
  for (const auto& host : hosts)
    if (!cabled.contains(host.name)) bare.push_back(host.name);
  if (bare.empty() || (!fabric.topology.empty() && bare.size() == hosts.size())) return;
  const auto* node = cluster.findNode(NodeName(bare.front()));
  diagnostics.error(node ? placeOf(node->where, fabric) : fabric.where,
                    fmt::format("fabric {}: no cable ends at {}, which its profile puts on it",
                                fabric.name, some(bare)),
                    "add its cables, or take the fabric out of the profile");
}

/// Of a text that was found, or that somebody wrote: declared cables are refused one by one.
void checkLoops(const inventory::Fabric& fabric, const Topology& declared,
                Diagnostics& diagnostics) {
  std::vector<std::string> looped;
  for (const auto& link : declared.links)
    if (link.a.node == link.b.node)
      looped.push_back(
          fmt::format("{} (ports {} and {})", link.a.node, link.a.number, link.b.number));
  if (!looped.empty())
    diagnostics.error(fabric.where,
                      fmt::format("fabric {}: topology_file has a cable with both ends at {}",
                                  fabric.name, some(looped)),
                      "let ibnetdiscover look at the fabric again when that cable is out");
}

/// Of a text that was found: a cable that was faulty then would be declared so. Splitter cables
/// make classes of their own, so nodes' cables and those between switches are counted apart.
void checkSpeeds(const inventory::Fabric& fabric, const Topology& declared,
                 Diagnostics& diagnostics) {
  constexpr std::size_t kFew = 4;  // of so many one
  if (fabric.topology.empty()) return;
  struct Class {
    std::size_t all = 0;
    std::map<std::string_view, std::vector<const Link*>> by_speed = {};
  };
  std::map<bool, Class> classes;  // between switches?
  std::vector<std::string> contradicting;
  for (const auto& link : declared.links) {
    const bool between =
        declared.devices.at(link.a.node).is_switch && declared.devices.at(link.b.node).is_switch;
    auto& alike = classes[between];
    ++alike.all;
    alike.by_speed[link.width_speed].push_back(&link);
    if (link.width_speed.find('/') != std::string::npos)
      contradicting.push_back(
          fmt::format("{} -- {} ({})", toString(link.a), toString(link.b), link.width_speed));
  }
  if (!contradicting.empty())
    diagnostics.error(fabric.where,
                      fmt::format("fabric {}: topology_file has a cable whose ends say different "
                                  "speeds: {}",
                                  fabric.name, some(contradicting)),
                      "mend it, and let ibnetdiscover look at the fabric again");
  for (const auto& [between, alike] : classes) {
    const auto usual = std::ranges::max_element(
        alike.by_speed, {}, [](const auto& entry) { return entry.second.size(); });
    const auto usual_rate = links::lineBitsPerSecond(usual->first);
    for (const auto& [speed, of] : alike.by_speed) {
      const auto rate = links::lineBitsPerSecond(speed);
      if (!rate || !usual_rate || *rate >= *usual_rate || of.size() * kFew > alike.all) continue;
      std::vector<std::string> places;
      for (const auto* link : of)
        places.push_back(fmt::format("{} -- {}", toString(link->a), toString(link->b)));
      diagnostics.warning(
          fabric.where,
          fmt::format("fabric {}: topology_file has {} of {} {} at {}, most others at {}: {}",
                      fabric.name, of.size(), alike.all,
                      between ? "cables between switches" : "cables of nodes", speed, usual->first,
                      some(places)),
          "a cable that was faulty when ibnetdiscover looked is declared so: mend it and look "
          "again, "
          "unless it is meant to be slower");
    }
  }
}

/// What a shape gives by itself, and a list of cables does not.
void checkExplicit(const inventory::Cluster& cluster, const inventory::Fabric& fabric,
                   const Topology& declared, Diagnostics& diagnostics) {
  if (fabric.shape != inventory::FabricShape::Explicit) return;
  checkLoops(fabric, declared, diagnostics);
  checkSpeeds(fabric, declared, diagnostics);
  checkConnected(fabric, declared, diagnostics);
  checkCabled(cluster, fabric, declared, diagnostics);
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
          placeOf(excluded.where, fabric),
          fmt::format("fabric {}: exclude names {}, which is no declared device of it", fabric.name,
                      excluded.device),
          std::string(kAsPlanned));
    else if (excluded.port > device->second.ports)
      diagnostics.warning(
          placeOf(excluded.where, fabric),
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
      diagnostics.warning(placeOf(row.where, fabric),
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
    checkExplicit(cluster, *fabric, *declared, diagnostics);
    checkExclusions(*fabric, *declared, diagnostics);
    checkSwitchRows(*fabric, *declared, diagnostics);
    expanded.push_back({fabric, std::move(*declared)});
  }
  checkApart(cluster, expanded, diagnostics);
}

}  // namespace muster::fabric
