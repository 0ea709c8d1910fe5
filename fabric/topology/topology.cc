// SPDX-License-Identifier: Apache-2.0
// The declaration expanded to devices and cables. Pure.
#include "fabric/topology/topology_builder.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/fabric_positions.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace muster::fabric {

namespace {

using inventory::AttachedRole;
using inventory::Cluster;
using inventory::Fabric;
using inventory::FabricCable;
using inventory::FabricShape;

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

/// A name with the number of a port behind it, as reports and tools write one: "gpu001 mlx5_0 port
/// 1", "gpu001 mlx5_0/1", "gpu001 mlx5_0:1".
struct NameWithPort {
  std::string_view name;
  int port = 0;
};
std::optional<NameWithPort> splitPort(std::string_view text) {
  for (const std::string_view between : {" port ", "/", ":"}) {
    const auto at = text.rfind(between);
    if (at == std::string_view::npos || at == 0) continue;
    const auto digits = text.substr(at + between.size());
    int port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error == std::errc() && end == digits.data() + digits.size() && port > 0)
      return NameWithPort{text.substr(0, at), port};
  }
  return std::nullopt;
}

using Hosts = std::map<std::string, const Host*, std::less<>>;

/// "gpu001" port 2 → its HCA of rail 1, port 1; "gpu001 mlx5_1" → itself; anything else is a
/// switch.
struct CableEnd {
  Port port;
  bool is_switch = false;
};
CableEnd cableEnd(const Hosts& hosts, std::string_view name, int port) {
  const auto whole = hosts.find(name);
  if (whole == hosts.end()) return {{std::string(name), port}, !hosts.contains(hostOf(name))};
  const auto& hcas = whole->second->hcas;
  const auto rail = static_cast<std::size_t>(port - 1);
  return {{rail < hcas.size() ? hcas[rail] : hcaName(name, port - 1), 1}, false};
}

/// The end that a cable means: every name of an HCA's port is that port. Errors: InvalidInput (the
/// name has another port than the cable says; what is behind the node's name is no HCA)
Result<CableEnd> declaredEnd(const Hosts& hosts, const Fabric& fabric, const FabricCable& cable,
                             const std::string& name, int port) {
  auto bad = [&](std::string text) {
    return fail(
        Error(ErrorCode::InvalidInput, fmt::format("fabric {}: {}", fabric.name, std::move(text)))
            .at(cable.where));
  };
  std::string_view device = name;
  const auto split = splitPort(name);
  if (split && (hosts.contains(hostOf(split->name)) || isHcaName(split->name))) {
    if (port != 1 && port != split->port)
      return bad(
          fmt::format("the cable of {} says port {} as well; leave one of them out", name, port));
    device = split->name, port = split->port;
  }
  auto end = cableEnd(hosts, device, port);
  const auto hca = std::string_view(end.port.node).substr(hostOf(end.port.node).size());
  if (!end.is_switch && hca.find_first_of(" /:", 1) != std::string_view::npos)
    return bad(fmt::format("{} is no HCA of {}: write it as \"{} mlx5_0\", and its port apart",
                           name, hostOf(end.port.node), hostOf(end.port.node)));
  return end;
}

/// Of a list of cables alone, whose node has rails: an HCA that is none of them is a typo, or
/// belongs to no fabric. Empty: it is one. Of several fabrics see checkDeclarations.
std::string noRail(const Cluster& cluster, const Hosts& hosts, const Fabric& fabric,
                   const std::string& hca) {
  const auto host = hosts.find(hostOf(hca));
  const auto* node = cluster.findNode(NodeName(std::string(hostOf(hca))));
  if (fabric.shape != FabricShape::Explicit || host == hosts.end() || !node) return {};
  const auto& profile = cluster.profileOf(*node);
  if (profile.rails.empty() || !profile.other_fabrics.empty() ||
      std::ranges::find(host->second->hcas, hca) != host->second->hcas.end())
    return {};
  return fmt::format(
      "{} is no rail of the profile {}; correct the cable, or add the HCA to the profile's rails",
      hca, profile.name);
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
  Hosts hosts = {{controller.name, &controller}};
  for (const auto& node : nodes) hosts[node.name] = &node;
  const bool explicit_shape = fabric.shape == FabricShape::Explicit;
  auto add = [&](const CableEnd& end, const FabricCable& cable, AttachedRole role) -> Result<void> {
    if (!end.is_switch) {
      if (auto strange = noRail(cluster, hosts, fabric, end.port.node); !strange.empty())
        return fail(Error(ErrorCode::InvalidInput,
                          fmt::format("fabric {}: {}", fabric.name, std::move(strange)))
                        .at(cable.where));
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
    TRY(from, declaredEnd(hosts, fabric, cable, cable.from_node, cable.from_port));
    TRY(to, declaredEnd(hosts, fabric, cable, cable.to_node, cable.to_port));
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

namespace {

/// Racks, labels and findings know devices by name alone.
Result<void> refuseTheControllersName(const Fabric& fabric, const std::vector<Host>& hosts) {
  const auto own = controllerHca(fabric);
  const auto same = std::ranges::find(hosts, hostOf(own), &Host::name);
  if (same == hosts.end()) return {};
  return refuse(fabric, fmt::format("a node is called {0}, and so is the host of muster's own HCA "
                                    "({1}); give the node another name",
                                    same->name, own));
}

Result<void> refuseSharedNames(const Fabric& fabric, const std::vector<Host>& hosts,
                               const Topology& topology) {
  for (const auto& host : hosts)
    if (const auto device = topology.devices.find(host.name);
        device != topology.devices.end() && device->second.is_switch)
      return refuse(fabric, fmt::format("a node and a switch are both called {}; give the node "
                                        "another name, or the switches a switch_prefix",
                                        host.name));
  return {};
}

Result<Topology> expanded(const Cluster& cluster, const Fabric& fabric) {
  if (!fabric.topology.empty()) return fromTopologyFile(cluster, fabric);
  if (fabric.shape == FabricShape::Explicit) {
    if (fabric.cables.empty()) return refuse(fabric, "shape explicit needs a list of cables");
    if (fabric.switch_ports < 2 || fabric.switch_ports > 254)
      return refuse(fabric,
                    fmt::format("switch_ports is {}; it must be 2 to 254", fabric.switch_ports));
  }
  auto hosts = hostsOn(cluster, fabric);
  TRY_OK(refuseTheControllersName(fabric, hosts));
  TopologyBuilder build(fabric);
  if (fabric.shape != FabricShape::Explicit) TRY_OK(buildTree(build, fabric, hosts));
  TRY_OK(addCables(build, cluster, fabric, hosts));
  auto out = build.finish();
  TRY_OK(refuseSharedNames(fabric, hosts, out));
  return out;
}

}  // namespace

Result<Topology> declaredTopology(const Cluster& cluster, const Fabric& fabric) {
  TRY(out, expanded(cluster, fabric));
  for (const auto& [name, other] : cluster.fabrics) {
    if (name == fabric.name) continue;
    auto hosts = hostsOn(cluster, other);
    hosts.push_back({"controller", {controllerHca(other)}, -1});
    for (auto& host : hosts)
      for (auto& hca : host.hcas)
        if (!out.devices.contains(hca)) out.elsewhere.emplace(std::move(hca), name);
  }
  return std::move(out);
}

}  // namespace muster::fabric
