// SPDX-License-Identifier: Apache-2.0
// Trees of switches: scalable units of leaves, spines that all share (two levels) or that each unit
// has (three), cores.
//
// Two placements of the HCAs differ, nothing else: rail-optimized puts HCA r of each node of a unit
// on its leaf r, a fat tree fills leaf after leaf.
#include "fabric/topology/topology_builder.h"
#include "inventory/model/fabric.h"

#include <algorithm>

namespace muster::fabric {

namespace {

using inventory::Fabric;
using inventory::FabricShape;

constexpr int kMaxSwitchPorts = 254;  // port numbers are 8 bit; 0 and 255 mean other things
constexpr int kLeafLevel = 1, kSpineLevel = 2, kCoreLevel = 3;
constexpr int kMaxSwitches = 4096;  // keeps a typo in `sus` from eating the memory

std::string leafName(const Fabric& f, int su, int leaf) {
  return f.shape == FabricShape::FatTree
             ? fmt::format("{}leaf-su{}-{:02}", f.switch_prefix, su + 1, leaf + 1)
             : fmt::format("{}leaf-su{}-r{}", f.switch_prefix, su + 1, leaf);
}
std::string spineName(const Fabric& f, int spine) {
  if (f.cores == 0) return fmt::format("{}spine-{:03}", f.switch_prefix, spine + 1);
  return fmt::format("{}spine-su{}-{:02}", f.switch_prefix, spine / f.spines_per_su + 1,
                     spine % f.spines_per_su + 1);
}
std::string coreName(const Fabric& f, int core) {
  return fmt::format("{}core-{:03}", f.switch_prefix, core + 1);
}

bool controllerAttached(const Fabric& f) {
  return std::find(f.subnet_managers.begin(), f.subnet_managers.end(), "controller") !=
         f.subnet_managers.end();
}

struct Plan {
  bool rails = false;  // placement
  int leaves_per_su = 0;
  int leaf_down = 0;        // ports of a leaf for HCAs; the uplinks start above them
  int spines_of_leaf = 0;   // that one leaf goes to
  int leaves_of_spine = 0;  // that one spine goes to
  int spine_down = 0;
  int cores_of_plane = 0;

  int leaves(const Fabric& f) const { return f.sus * leaves_per_su; }
  int spines(const Fabric& f) const { return f.sus * f.spines_per_su; }
};

Plan planOf(const Fabric& f) {
  Plan plan;
  plan.rails = f.shape == FabricShape::RailOptimized;
  plan.leaves_per_su = plan.rails ? f.rails : f.leaves_per_su;
  if (plan.rails)
    plan.leaf_down = std::max(f.switch_ports / 2, f.nodes_per_su);
  else
    plan.leaf_down = f.leaf_down_ports ? f.leaf_down_ports : f.switch_ports / 2;
  plan.spines_of_leaf = f.cores ? f.spines_per_su : plan.spines(f);
  plan.leaves_of_spine = f.cores ? plan.leaves_per_su : plan.leaves(f);
  plan.spine_down =
      f.cores ? std::max(f.switch_ports / 2, plan.leaves_of_spine * f.uplinks_per_leaf_spine)
              : f.switch_ports;
  plan.cores_of_plane = f.cores ? f.cores / std::max(1, f.spines_per_su) : 0;
  return plan;
}

Result<void> checkSizes(const Fabric& f) {
  if (f.sus < 1 || f.rails < 1 || f.nodes_per_su < 1 || f.leaves_per_su < 1 ||
      f.spines_per_su < 0 || f.uplinks_per_leaf_spine < 1 || f.cores < 0 ||
      f.uplinks_per_spine_core < 1)
    return refuse(
        f, "sus, rails, nodes_per_su, leaves_per_su and the numbers of uplinks must be at least 1");
  if (f.switch_ports < 2 || f.switch_ports > kMaxSwitchPorts)
    return refuse(
        f, fmt::format("switch_ports is {}; it must be 2 to {}", f.switch_ports, kMaxSwitchPorts));
  auto over = [](long long a, long long b) { return a * b > kMaxSwitches; };
  if (over(f.sus, 1) || over(f.rails, f.sus) || over(f.leaves_per_su, f.sus) ||
      over(f.spines_per_su, f.sus) || f.cores > kMaxSwitches)
    return refuse(f, fmt::format("more than {} switches in one tier", kMaxSwitches));
  if (f.cores > 0 && (f.spines_per_su == 0 || f.cores % f.spines_per_su != 0))
    return refuse(f, fmt::format("{} cores cannot be shared out among {} planes (spines_per_su)",
                                 f.cores, f.spines_per_su));
  return {};
}

Result<void> checkPorts(const Fabric& f, const Plan& plan) {
  if (plan.spines_of_leaf == 0 && plan.leaves(f) > 1)
    return refuse(
        f, fmt::format("{} leaves but no spine would be {} separate fabrics; set spines_per_su",
                       plan.leaves(f), plan.leaves(f)));
  auto uplinks = static_cast<long long>(plan.spines_of_leaf) * f.uplinks_per_leaf_spine;
  if (plan.leaf_down + uplinks > f.switch_ports)
    return refuse(f, fmt::format("a leaf needs {} down ports and {} uplinks, its switch has {} "
                                 "ports; lower nodes_per_su, spines_per_su or "
                                 "uplinks_per_leaf_spine",
                                 plan.leaf_down, uplinks, f.switch_ports));
  auto from_leaves = static_cast<long long>(plan.leaves_of_spine) * f.uplinks_per_leaf_spine;
  if (plan.spines_of_leaf > 0 && from_leaves > f.switch_ports)
    return refuse(f, fmt::format("a spine needs {} ports for {} leaves, its switch has {}",
                                 from_leaves, plan.leaves_of_spine, f.switch_ports));
  auto to_cores = static_cast<long long>(plan.cores_of_plane) * f.uplinks_per_spine_core;
  if (f.cores && plan.spine_down + to_cores > f.switch_ports)
    return refuse(
        f, fmt::format("a spine needs {} ports for leaves and {} for cores, its switch has {}",
                       plan.spine_down, to_cores, f.switch_ports));
  if (f.cores && static_cast<long long>(f.sus) * f.uplinks_per_spine_core > f.switch_ports)
    return refuse(f, fmt::format("a core needs {} ports for {} SU, its switch has {}",
                                 static_cast<long long>(f.sus) * f.uplinks_per_spine_core, f.sus,
                                 f.switch_ports));
  return {};
}

/// Where each HCA of a host is: rail-optimized counts nodes, a fat tree its down ports.
std::vector<int> firstPlaces(const Fabric& f, const Plan& plan, const std::vector<Host>& hosts) {
  std::vector<int> first;
  int filled = 0;
  for (const auto& host : hosts) {
    if (plan.rails)
      first.push_back(host.place);
    else
      first.push_back(f.places.empty() ? filled : host.place * f.rails);
    filled += static_cast<int>(host.hcas.size());
  }
  return first;
}

Result<void> checkPlaces(const Fabric& f, const Plan& plan, const std::vector<Host>& hosts) {
  const auto first = firstPlaces(f, plan, hosts);
  std::size_t used = 0;  // up to the last one that is taken
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto& host = hosts[i];
    if ((plan.rails || !f.places.empty()) && host.hcas.size() > static_cast<std::size_t>(f.rails))
      return refuse(f, fmt::format("{} has {} HCAs, the fabric has {} rails", host.name,
                                   host.hcas.size(), f.rails));
    if (host.place < 0)
      return refuse(f, fmt::format("{} is on it, but not in its places", host.name));
    used = std::max(used, static_cast<std::size_t>(first[i]) + (plan.rails ? 1 : host.hcas.size()));
  }
  auto places =
      static_cast<std::size_t>(f.sus) *
      static_cast<std::size_t>(plan.rails ? f.nodes_per_su : plan.leaves_per_su * plan.leaf_down);
  if (used > places && !f.places.empty())
    return refuse(f, fmt::format("its places go up to {}, {} SU have {}; raise sus, or list fewer",
                                 used, f.sus, places));
  if (used > places)
    return refuse(f, plan.rails ? fmt::format("{} nodes are on it, but {} SU of {} nodes have {} "
                                              "places; raise sus or nodes_per_su",
                                              used, f.sus, f.nodes_per_su, places)
                                : fmt::format("{} HCAs are on it, but {} SU of {} leaves have {} "
                                              "places; raise sus or leaves_per_su",
                                              used, f.sus, plan.leaves_per_su, places));
  bool full = used == places && (!plan.rails || plan.leaf_down == f.nodes_per_su);
  if (controllerAttached(f) && full)
    return refuse(f, fmt::format("no port of {} is left for the controller's subnet manager; the "
                                 "last SU must hold one node less",
                                 leafName(f, f.sus - 1, plan.rails ? 0 : plan.leaves_per_su - 1)));
  return {};
}

/// `count` cables between two switches, from these ports on.
Result<void> bundle(TopologyBuilder& build, const std::string& lower, int lower_port,
                    const std::string& upper, int upper_port, int count, const std::string& link) {
  for (int k = 0; k < count; ++k)
    TRY_OK(build.cable({lower, lower_port + k}, {upper, upper_port + k}, link));
  return {};
}

/// Each name once: a switch has a cable a port.
std::vector<std::string> namesOf(const Fabric& f, int count,
                                 std::string (*name)(const Fabric&, int)) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(name(f, i));
  return out;
}

Result<void> buildSwitches(TopologyBuilder& build, const Fabric& f, const Plan& plan) {
  const auto cores = namesOf(f, f.cores, coreName);
  const auto spines = namesOf(f, plan.spines(f), spineName);
  const auto at = [](const std::vector<std::string>& names, int i) -> const std::string& {
    return names[static_cast<std::size_t>(i)];
  };
  for (const auto& core : cores) build.addSwitch(core, kCoreLevel);
  for (const auto& spine : spines) build.addSwitch(spine, kSpineLevel);
  for (int leaf = 0; leaf < plan.leaves(f); ++leaf) {
    int su = leaf / plan.leaves_per_su, in_su = leaf % plan.leaves_per_su;
    auto name = leafName(f, su, in_su);
    build.addSwitch(name, kLeafLevel);
    for (int k = 0; k < plan.spines_of_leaf; ++k)
      TRY_OK(bundle(build, name, plan.leaf_down + k * f.uplinks_per_leaf_spine + 1,
                    at(spines, f.cores ? su * f.spines_per_su + k : k),
                    (f.cores ? in_su : leaf) * f.uplinks_per_leaf_spine + 1,
                    f.uplinks_per_leaf_spine, f.leafSpineLink()));
  }
  for (int spine = 0; f.cores && spine < plan.spines(f); ++spine)
    for (int k = 0; k < plan.cores_of_plane; ++k)
      TRY_OK(bundle(build, at(spines, spine), plan.spine_down + k * f.uplinks_per_spine_core + 1,
                    at(cores, spine % f.spines_per_su * plan.cores_of_plane + k),
                    spine / f.spines_per_su * f.uplinks_per_spine_core + 1,
                    f.uplinks_per_spine_core, f.spineCoreLink()));
  return {};
}

Result<void> placeHcas(TopologyBuilder& build, const Fabric& f, const Plan& plan,
                       const std::vector<Host>& hosts) {
  const auto first = firstPlaces(f, plan, hosts);
  for (std::size_t i = 0; i < hosts.size(); ++i)
    for (int rail = 0; rail < static_cast<int>(hosts[i].hcas.size()); ++rail) {
      const auto& hca = hosts[i].hcas[static_cast<std::size_t>(rail)];
      build.addHca(hca);
      const int down = first[i] + rail;  // of a fat tree
      int leaf = plan.rails ? first[i] / f.nodes_per_su * plan.leaves_per_su + rail
                            : down / plan.leaf_down;
      int port = plan.rails ? first[i] % f.nodes_per_su : down % plan.leaf_down;
      TRY_OK(build.cable(
          {hca, 1}, {leafName(f, leaf / plan.leaves_per_su, leaf % plan.leaves_per_su), port + 1},
          f.nodeLink()));
    }
  if (!controllerAttached(f)) return {};
  build.addHca(controllerHca(f));
  return build.cable(
      {controllerHca(f), 1},
      {leafName(f, f.sus - 1, plan.rails ? 0 : plan.leaves_per_su - 1), plan.leaf_down},
      f.nodeLink());
}

}  // namespace

Result<void> buildTree(TopologyBuilder& build, const Fabric& fabric,
                       const std::vector<Host>& hosts) {
  TRY_OK(checkSizes(fabric));
  auto plan = planOf(fabric);
  TRY_OK(checkPorts(fabric, plan));
  TRY_OK(checkPlaces(fabric, plan, hosts));
  TRY_OK(buildSwitches(build, fabric, plan));
  return placeHcas(build, fabric, plan, hosts);
}

}  // namespace muster::fabric
