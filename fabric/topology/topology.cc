// SPDX-License-Identifier: Apache-2.0
// The declaration expanded to devices and cables. Pure.
#include "fabric/topology/topology_builder.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/fabric_positions.h"
#include "inventory/model/profile.h"

#include <algorithm>
#include <array>

namespace muster::fabric {

namespace {

using inventory::AttachedRole;
using inventory::Cluster;
using inventory::Fabric;
using inventory::FabricCable;
using inventory::FabricShape;

/// "gpu001" port 2 → its HCA of rail 1, port 1; "gpu001 mlx5_1" → itself; anything else is a
/// switch.
struct CableEnd {
  Port port;
  bool is_switch = false;
};
CableEnd cableEnd(const std::map<std::string, const Host*>& hosts, const std::string& name,
                  int port) {
  auto whole = hosts.find(name);
  if (whole != hosts.end()) {
    auto rail = static_cast<std::size_t>(port - 1);
    const auto& hcas = whole->second->hcas;
    return {{rail < hcas.size() ? hcas[rail] : hcaName(name, port - 1), 1}, false};
  }
  auto space = name.find(' ');
  if (space != std::string::npos && hosts.count(name.substr(0, space)))
    return {{name, port}, false};
  return {{name, port}, true};
}

/// How HCAs are called in the system, and in node descriptions. A switch's name may have spaces
/// too.
constexpr std::array<std::string_view, 6> kHcaBegins{"mlx", "bnxt_re", "irdma",
                                                     "hfi", "rxe",     "HCA-"};

bool isHcaName(std::string_view device_name) {
  const auto host = hostOf(device_name);
  if (host.size() == device_name.size()) return false;
  const auto hca = device_name.substr(host.size() + 1);
  return hca.find(' ') == std::string_view::npos &&
         std::ranges::any_of(kHcaBegins,
                             [hca](std::string_view begin) { return hca.starts_with(begin); });
}

/// An end of a cable that would be taken for a switch, and is a host's: of a node that is not on
/// the fabric, or of one that there is not. Empty: it is none.
std::string strangeHost(const Cluster& cluster, const Fabric& fabric, const std::string& name) {
  const auto host = hostOf(name);
  if (cluster.findNode(NodeName(std::string(host))))
    return fmt::format(
        "{} is a node that is not on the fabric {}: name the fabric in its profile, "
        "or correct the cable",
        host, fabric.name);
  if (isHcaName(name))
    return fmt::format(
        "there is no node {} for the HCA {}: correct the name, or say the cable's "
        "role if `from` is another host",
        host, name);
  return {};
}

Result<void> addCables(TopologyBuilder& build, const Cluster& cluster, const Fabric& fabric,
                       const std::vector<Host>& nodes) {
  const Host controller{"controller", {controllerHca(fabric)}, -1};
  std::map<std::string, const Host*> hosts = {{controller.name, &controller}};
  for (const auto& node : nodes) hosts[node.name] = &node;
  const bool explicit_shape = fabric.shape == FabricShape::Explicit;
  auto add = [&](const CableEnd& end, const FabricCable& cable, AttachedRole role) -> Result<void> {
    if (!end.is_switch) {
      build.addHca(end.port.node, role);
      return {};
    }
    if (auto strange = strangeHost(cluster, fabric, end.port.node); !strange.empty())
      return fail(Error(ErrorCode::InvalidInput,
                        fmt::format("fabric {}: {}", fabric.name, std::move(strange)))
                      .at(cable.where));
    if (explicit_shape)
      build.addSwitch(end.port.node);
    else if (!build.has(end.port.node))
      return fail(Error(ErrorCode::InvalidInput,
                        fmt::format("fabric {}: the shape has no switch {}; name one of its "
                                    "switches, or say the cable's role if it is a host",
                                    fabric.name, end.port.node))
                      .at(cable.where));
    return {};
  };
  for (const auto& cable : fabric.cables) {
    auto from = cableEnd(hosts, cable.from_node, cable.from_port);
    auto to = cableEnd(hosts, cable.to_node, cable.to_port);
    if (cable.role != AttachedRole::None && !from.is_switch &&
        hostOf(from.port.node) != controller.name)
      return fail(Error(ErrorCode::InvalidInput,
                        fmt::format("fabric {}: {} is an HCA of a node, and the cable says that it "
                                    "is storage, UFM or a gateway; remove the role, or name the "
                                    "other host's HCA",
                                    fabric.name, from.port.node))
                      .at(cable.where));
    if (cable.role != AttachedRole::None) from.is_switch = false;
    TRY_OK(add(from, cable, cable.role));
    TRY_OK(add(to, cable, AttachedRole::None));
    TRY_OK(build.cable(from.port, to.port, cable.link.empty() ? fabric.link : cable.link, &cable));
  }
  return {};
}

/// A found fabric as the wish: what only a discovery knows is taken out. HCAs that no node of the
/// fabric has are attached, unless none is a node's: then the file names hosts by other names.
Result<Topology> fromTopologyFile(const Cluster& cluster, const Fabric& fabric) {
  auto read = parseFound(fabric.topology);
  if (!read)
    return fail(
        std::move(read).error().within(fmt::format("fabric {}: topology_file", fabric.name)));
  for (auto& [name, device] : read->devices) {
    device.guid.clear();
    device.addresses.clear();
  }
  std::set<std::string, std::less<>> hosts;
  for (const auto& host : hostsOn(cluster, fabric)) hosts.insert(host.name);
  const auto is_node = [&](const auto& entry) { return hosts.contains(hostOf(entry.first)); };
  if (std::any_of(read->devices.begin(), read->devices.end(), is_node))
    for (auto& entry : read->devices)
      entry.second.is_attached = !entry.second.is_switch && !is_node(entry);
  return std::move(*read);
}

}  // namespace

std::unexpected<Error> refuse(const Fabric& fabric, std::string text) {
  return fail(
      Error(ErrorCode::InvalidInput, fmt::format("fabric {}: {}", fabric.name, std::move(text)))
          .at(fabric.where));
}

Result<void> TopologyBuilder::cable(Port one, Port other, const std::string& link,
                                    const FabricCable* declared) {
  auto bad = [&](std::string text) {
    return fail(Error(ErrorCode::InvalidInput, std::move(text))
                    .at(declared ? declared->where : SourceRef{}));
  };
  if (one.node == other.node)
    return bad(
        fmt::format("fabric {}: both ends of a cable are at {} (ports {} and {}); correct one "
                    "of them",
                    fabric_.name, one.node, one.number, other.number));
  for (const auto* end : {&one, &other}) {
    auto& device = ends_.at(end->node);
    if (end->number < 1 || end->number > device.ports)
      return bad(fmt::format("{} has ports 1 to {}, the cable names port {}", end->node,
                             device.ports, end->number));
    const auto number = static_cast<std::size_t>(end->number);
    if (device.used.test(number))
      return bad(
          fmt::format("two cables end at {}; give one of them another port", toString(*end)));
    device.used.set(number);
  }
  if (other < one) std::swap(one, other);
  topology_.links.push_back({std::move(one), std::move(other), link});
  return {};
}

/// In the order of Link's comparison, found by numbers: comparing names takes ten times as long.
Topology TopologyBuilder::finish() {
  std::uint32_t rank = 0;
  for (const auto& [name, device] : topology_.devices) ends_.at(name).rank = rank++;
  const auto keyOf = [this](const Port& port) {
    return std::uint64_t{ends_.at(port.node).rank} << 8 | static_cast<std::uint64_t>(port.number);
  };
  std::vector<std::pair<std::uint64_t, std::size_t>> order;  // a port has one cable: `a` decides
  order.reserve(topology_.links.size());
  for (std::size_t i = 0; i < topology_.links.size(); ++i)
    order.emplace_back(keyOf(topology_.links[i].a), i);
  std::sort(order.begin(), order.end());
  std::vector<Link> links;
  links.reserve(order.size());
  for (const auto& [key, i] : order) links.push_back(std::move(topology_.links[i]));
  topology_.links = std::move(links);
  return std::move(topology_);
}

std::string hcaName(std::string_view node, int rail) {
  return fmt::format("{} mlx5_{}", node, rail);
}

std::string controllerHca(const Fabric& fabric) { return "controller " + fabric.controller_hca; }

std::string_view hostOf(std::string_view device_name) {
  return device_name.substr(0, device_name.find(' '));
}

std::string toString(const Port& port) { return fmt::format("{} port {}", port.node, port.number); }

std::string ibsimNodeId(std::string_view device_name) {
  std::string id(device_name);
  std::replace(id.begin(), id.end(), ' ', '-');
  return id;
}

std::vector<Host> hostsOn(const Cluster& cluster, const Fabric& fabric) {
  std::vector<Host> hosts;
  const auto places = inventory::placesOn(cluster, fabric);
  for (const auto& node : cluster.nodes) {
    auto profile = cluster.profiles.find(node.profile);
    if (profile == cluster.profiles.end() || !isOn(profile->second, fabric.name)) continue;
    const auto place = places.find(node.name);
    Host host{node.name.str(), {}, place == places.end() ? -1 : place->second};
    for (const auto& hca : hcasOn(profile->second, fabric))
      host.hcas.push_back(fmt::format("{} {}", host.name, hca));
    hosts.push_back(std::move(host));
  }
  return hosts;
}

Result<Topology> declaredTopology(const Cluster& cluster, const Fabric& fabric) {
  if (!fabric.topology.empty()) return fromTopologyFile(cluster, fabric);
  if (fabric.shape == FabricShape::Explicit) {
    if (fabric.cables.empty()) return refuse(fabric, "shape explicit needs a list of cables");
    if (fabric.switch_ports < 2 || fabric.switch_ports > 254)
      return refuse(fabric,
                    fmt::format("switch_ports is {}; it must be 2 to 254", fabric.switch_ports));
  }
  auto hosts = hostsOn(cluster, fabric);
  TopologyBuilder build(fabric);
  if (fabric.shape != FabricShape::Explicit) TRY_OK(buildTree(build, fabric, hosts));
  TRY_OK(addCables(build, cluster, fabric, hosts));
  return build.finish();
}

}  // namespace muster::fabric
