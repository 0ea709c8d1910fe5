// The declaration expanded to devices and cables. Pure.
#include "fabric/fabric.h"

#include <algorithm>
#include <set>

namespace muster::fabric {

namespace {

using inventory::Cluster;
using inventory::Fabric;

constexpr int kMaxSwitchPorts = 254;  // port numbers are 8 bit; 0 and 255 mean other things
constexpr int kMaxSwitches = 4096;    // keeps a typo in `sus` from eating the memory

std::string leafName(int su, int rail) { return fmt::format("leaf-su{}-r{}", su + 1, rail); }
std::string spineName(int spine) { return fmt::format("spine-{:03}", spine + 1); }

std::vector<std::string> nodesOn(const Cluster& cluster, const Fabric& fabric) {
  std::vector<std::string> names;
  for (const auto& node : cluster.nodes) {
    auto profile = cluster.profiles.find(node.profile);
    if (profile != cluster.profiles.end() && profile->second.fabric == fabric.name) names.push_back(node.name.str());
  }
  return names;
}

bool controllerAttached(const Fabric& fabric) {
  return std::find(fabric.subnet_managers.begin(), fabric.subnet_managers.end(), "controller") != fabric.subnet_managers.end();
}

class Builder {
 public:
  explicit Builder(const Fabric& fabric) : fabric_(fabric) {}

  void addSwitch(const std::string& name) { add({name, true, fabric_.switch_ports, {}, {}}); }
  void addHca(const std::string& name) { add({name, false, 1, {}, {}}); }

  Result<void> cable(Port one, Port other, const SourceRef& where = {}) {
    for (const auto& end : {one, other}) {
      const auto& device = topology_.devices.at(end.node);
      if (end.number < 1 || end.number > device.ports)
        return fail(
            Error(ErrorCode::InvalidInput, fmt::format("{} has ports 1 to {}, the cable names port {}", end.node, device.ports, end.number))
                .at(where));
      if (!used_.insert(end).second)
        return fail(
            Error(ErrorCode::InvalidInput, fmt::format("two cables end at {} port {}; give one of them another port", end.node, end.number))
                .at(where));
    }
    if (other < one) std::swap(one, other);
    topology_.links.push_back({std::move(one), std::move(other), fabric_.link});
    return {};
  }

  Topology finish() {
    std::sort(topology_.links.begin(), topology_.links.end());
    return std::move(topology_);
  }

 private:
  void add(Device device) { topology_.devices.try_emplace(device.name, device); }

  const Fabric& fabric_;
  Topology topology_;
  std::set<Port> used_;
};

struct RailPlan {
  int leaves = 0;
  int spines = 0;
  int down_ports = 0;  // of a leaf; the uplinks start above them
};

tl::unexpected<Error> refuse(const Fabric& fabric, std::string text) {
  return fail(ErrorCode::InvalidInput, fmt::format("fabric {}: {}", fabric.name, std::move(text)));
}

Result<RailPlan> planRails(const Fabric& f, std::size_t nodes) {
  if (f.sus < 1 || f.rails < 1 || f.nodes_per_su < 1 || f.spines_per_su < 0 || f.uplinks_per_leaf_spine < 1)
    return refuse(f, "sus, rails, nodes_per_su and uplinks_per_leaf_spine must be at least 1");
  if (f.switch_ports < 2 || f.switch_ports > kMaxSwitchPorts)
    return refuse(f, fmt::format("switch_ports is {}; it must be 2 to {}", f.switch_ports, kMaxSwitchPorts));
  if (f.sus > kMaxSwitches || f.rails > kMaxSwitches || f.spines_per_su > kMaxSwitches || f.sus * f.rails > kMaxSwitches ||
      f.sus * f.spines_per_su > kMaxSwitches)
    return refuse(f, fmt::format("more than {} switches in one tier", kMaxSwitches));
  RailPlan plan{f.sus * f.rails, f.sus * f.spines_per_su, std::max(f.switch_ports / 2, f.nodes_per_su)};
  if (plan.spines == 0 && plan.leaves > 1)
    return refuse(f, fmt::format("{} leaves but no spine would be {} separate fabrics; set spines_per_su", plan.leaves, plan.leaves));
  if (plan.down_ports + plan.spines * f.uplinks_per_leaf_spine > f.switch_ports)
    return refuse(f, fmt::format("a leaf needs {} down ports and {} uplinks, its switch has {} ports; lower nodes_per_su, spines_per_su or "
                                 "uplinks_per_leaf_spine",
                                 plan.down_ports, plan.spines * f.uplinks_per_leaf_spine, f.switch_ports));
  if (plan.spines > 0 && plan.leaves * f.uplinks_per_leaf_spine > f.switch_ports)
    return refuse(f, fmt::format("a spine needs {} ports for {} leaves, its switch has {}", plan.leaves * f.uplinks_per_leaf_spine,
                                 plan.leaves, f.switch_ports));
  auto places = static_cast<std::size_t>(f.sus) * static_cast<std::size_t>(f.nodes_per_su);
  if (nodes > places)
    return refuse(f, fmt::format("{} nodes are on it, but {} SU of {} nodes have {} places; raise sus or nodes_per_su", nodes, f.sus,
                                 f.nodes_per_su, places));
  if (controllerAttached(f) && plan.down_ports == f.nodes_per_su && nodes == places)
    return refuse(f, fmt::format("no port of {} is left for the controller's subnet manager; the last SU must hold one node less",
                                 leafName(f.sus - 1, 0)));
  return plan;
}

Result<Topology> railOptimized(const Fabric& fabric, const std::vector<std::string>& nodes) {
  TRY(plan, planRails(fabric, nodes.size()));
  Builder build(fabric);
  for (int spine = 0; spine < plan.spines; ++spine) build.addSwitch(spineName(spine));
  for (int leaf = 0; leaf < plan.leaves; ++leaf) {
    auto name = leafName(leaf / fabric.rails, leaf % fabric.rails);
    build.addSwitch(name);
    for (int spine = 0; spine < plan.spines; ++spine)
      for (int k = 0; k < fabric.uplinks_per_leaf_spine; ++k)
        TRY_OK(build.cable({name, plan.down_ports + spine * fabric.uplinks_per_leaf_spine + k + 1},
                           {spineName(spine), leaf * fabric.uplinks_per_leaf_spine + k + 1}));
  }
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    for (int rail = 0; rail < fabric.rails; ++rail) {
      auto hca = hcaName(nodes[static_cast<std::size_t>(i)], rail);
      build.addHca(hca);
      TRY_OK(build.cable({hca, 1}, {leafName(i / fabric.nodes_per_su, rail), i % fabric.nodes_per_su + 1}));
    }
  if (controllerAttached(fabric)) {
    build.addHca(std::string(kControllerHca));
    TRY_OK(build.cable({std::string(kControllerHca), 1}, {leafName(fabric.sus - 1, 0), plan.down_ports}));
  }
  return build.finish();
}

/// "gpu001" port 2 → HCA "gpu001 mlx5_1" port 1; "gpu001 mlx5_1" → itself; anything else is a switch.
struct CableEnd {
  Port port;
  bool is_switch = false;
};
CableEnd cableEnd(const std::set<std::string>& hosts, const std::string& name, int port) {
  if (hosts.count(name)) return {{hcaName(name, port - 1), 1}, false};
  auto space = name.find(' ');
  if (space != std::string::npos && hosts.count(name.substr(0, space))) return {{name, port}, false};
  return {{name, port}, true};
}

Result<Topology> explicitCables(const Fabric& fabric, const std::vector<std::string>& nodes) {
  if (fabric.cables.empty()) return refuse(fabric, "shape explicit needs a list of cables");
  if (fabric.switch_ports < 2 || fabric.switch_ports > kMaxSwitchPorts)
    return refuse(fabric, fmt::format("switch_ports is {}; it must be 2 to {}", fabric.switch_ports, kMaxSwitchPorts));
  std::set<std::string> hosts(nodes.begin(), nodes.end());
  hosts.insert("controller");
  Builder build(fabric);
  for (const auto& cable : fabric.cables) {
    auto from = cableEnd(hosts, cable.from_node, cable.from_port);
    auto to = cableEnd(hosts, cable.to_node, cable.to_port);
    for (const auto& end : {from, to}) end.is_switch ? build.addSwitch(end.port.node) : build.addHca(end.port.node);
    TRY_OK(build.cable(from.port, to.port, cable.where));
  }
  return build.finish();
}

}  // namespace

std::string hcaName(std::string_view node, int rail) { return fmt::format("{} mlx5_{}", node, rail); }

std::string ibsimNodeId(std::string_view device_name) {
  std::string id(device_name);
  std::replace(id.begin(), id.end(), ' ', '-');
  return id;
}

Result<Topology> declaredTopology(const Cluster& cluster, const Fabric& fabric) {
  auto nodes = nodesOn(cluster, fabric);
  return fabric.shape == inventory::FabricShape::RailOptimized ? railOptimized(fabric, nodes) : explicitCables(fabric, nodes);
}

}  // namespace muster::fabric
