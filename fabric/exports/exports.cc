// SPDX-License-Identifier: Apache-2.0
#include "fabric/exports/exports.h"

#include "base/io/crypto.h"
#include "fabric/compare/compare.h"
#include "fabric/fabric_diff.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>
#include <array>
#include <set>

namespace muster::fabric {

namespace {

using inventory::Fabric;
using inventory::FabricShape;

/// "leaf-su3-r0" → "su3"; empty for switches that no shape has named.
std::string unitOf(const Fabric& fabric, std::string_view leaf) {
  constexpr std::string_view kHead = "leaf-";
  leaf.remove_prefix(leaf.starts_with(fabric.switch_prefix) ? fabric.switch_prefix.size() : 0);
  if (!leaf.starts_with(kHead) || leaf.substr(kHead.size()).substr(0, 2) != "su") return {};
  auto rest = leaf.substr(kHead.size());
  return std::string(rest.substr(0, rest.find('-')));
}

std::map<std::string, std::set<std::string>> leavesByNode(const std::vector<Host>& hosts,
                                                          const Topology& declared) {
  std::set<std::string, std::less<>> names;
  for (const auto& host : hosts) names.insert(host.name);
  std::map<std::string, std::set<std::string>> out;
  for (const auto& link : declared.links)
    for (const auto& [hca, other] : {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)})
      if (auto host = names.find(hostOf(hca->node));
          host != names.end() && declared.devices.at(other->node).is_switch)
        out[*host].insert(other->node);
  return out;
}

/// Names that Slurm reads as one name and Kubernetes takes as the value of a label: at most 63 of
/// letters, digits, '-', '_', '.', with a letter or digit at both ends. Names of switches in the
/// field are neither ("MF0;ib-1:MQM9700/U1"). One name of a level gives one name out, never
/// another's: a fabric that is called as one of its switches is another switch of Slurm's tree.
class LegalNames {
 public:
  enum class Level { Group, Unit, Fabric };
  std::string of(const std::string& name, Level level = Level::Group) {
    if (const auto known = given_.find({level, name}); known != given_.end()) return known->second;
    auto legal = name;
    for (auto& c : legal)
      if (!isAlnum(c) && c != '-' && c != '_' && c != '.') c = '-';
    while (!legal.empty() && !isAlnum(legal.front())) legal.erase(legal.begin());
    while (!legal.empty() && !isAlnum(legal.back())) legal.pop_back();
    const auto begin = legal.substr(0, kMostBytes - kDigestBytes - 1);
    auto digest = name;
    while (legal.empty() || legal.size() > kMostBytes || taken_.contains(legal)) {
      digest = io::sha256Hex(digest);
      legal = fmt::format("{}{}{}", begin, begin.empty() ? "x" : "-",
                          std::string_view(digest).substr(0, kDigestBytes));
    }
    taken_.insert(legal);
    return given_[{level, name}] = legal;
  }

 private:
  static constexpr std::size_t kMostBytes = 63, kDigestBytes = 8;
  static bool isAlnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  }
  std::map<std::pair<Level, std::string>, std::string> given_;
  std::set<std::string> taken_;
};

std::string groupName(const Fabric& fabric, const std::set<std::string>& leaves,
                      const std::string& prefix, LegalNames& legal) {
  if (fabric.shape == FabricShape::RailOptimized)
    return legal.of(prefix + unitOf(fabric, *leaves.begin()));
  return legal.of(fmt::format("{}", fmt::join(leaves, "_")));
}

void children(const Vicinity& group,
              const std::function<void(const Vicinity&, const std::string& parent)>& visit) {
  for (const auto& child : group.children) {
    visit(child, group.name);
    children(child, visit);
  }
}
std::vector<const Vicinity*> lowest(const Vicinity& top) {
  if (top.children.empty()) return {&top};
  std::vector<const Vicinity*> out;
  children(top, [&](const Vicinity& group, const std::string&) {
    if (group.children.empty()) out.push_back(&group);
  });
  return out;
}

std::string childNames(const Vicinity& group) {
  std::vector<std::string> names;
  for (const auto& child : group.children) names.push_back(child.name);
  return inventory::foldHostlist(std::move(names));
}

std::size_t blockSize(const std::vector<std::pair<std::string, std::vector<std::string>>>& blocks) {
  std::size_t least = SIZE_MAX;
  for (const auto& [name, nodes] : blocks) least = std::min(least, nodes.size());
  return least;
}

std::vector<std::pair<std::string, std::vector<std::string>>> blocksOf(
    const std::vector<Vicinity>& tops, const std::vector<const Fabric*>& fabrics) {
  std::vector<std::pair<std::string, std::vector<std::string>>> blocks;
  LegalNames legal;
  for (const auto* fabric : fabrics)
    for (const auto& domain : fabric->nvlink_domains)
      blocks.emplace_back(legal.of(domain.name), domain.nodes);
  if (!blocks.empty()) return blocks;
  for (const auto& top : tops)
    for (const auto* group : lowest(top))
      if (!group->nodes.empty()) blocks.emplace_back(group->name, group->nodes);
  return blocks;
}

std::string inQuotes(std::string_view text) { return fmt::format("\"{}\"", text); }

}  // namespace

namespace {

/// `prefix` goes before the names of groups, so that two fabrics have none in common.
Vicinity vicinityIn(const inventory::Cluster& cluster, const Fabric& fabric,
                    const Topology& declared, const std::string& prefix, LegalNames& legal) {
  std::map<std::string, std::map<std::string, Vicinity>>
      units;  // "" where there is no level between group and fabric
  auto hosts = hostsOn(cluster, fabric);
  for (auto leaves = leavesByNode(hosts, declared); const auto& host : hosts) {
    auto own = leaves.find(host.name);
    if (own == leaves.end()) continue;
    auto unit =
        fabric.cores > 0 && fabric.shape == FabricShape::FatTree
            ? legal.of(prefix + unitOf(fabric, *own->second.begin()), LegalNames::Level::Unit)
            : std::string();
    auto name = groupName(fabric, own->second, prefix, legal);
    auto& group = units[unit][name];
    group.name = name;
    group.nodes.push_back(host.name);
  }
  Vicinity top{legal.of(fabric.name, LegalNames::Level::Fabric), {}, {}};
  for (auto& [unit, groups] : units) {
    std::vector<Vicinity> list;
    for (auto& [name, group] : groups) list.push_back(std::move(group));
    std::sort(list.begin(), list.end(),
              [](const auto& a, const auto& b) { return inventory::naturalLess(a.name, b.name); });
    if (unit.empty())
      top.children.insert(top.children.end(), std::make_move_iterator(list.begin()),
                          std::make_move_iterator(list.end()));
    else
      top.children.push_back({unit, {}, std::move(list)});
  }
  std::sort(top.children.begin(), top.children.end(),
            [](const auto& a, const auto& b) { return inventory::naturalLess(a.name, b.name); });
  return top;
}

}  // namespace

Vicinity vicinityOf(const inventory::Cluster& cluster, const Fabric& fabric,
                    const Topology& declared) {
  LegalNames legal;
  return vicinityIn(cluster, fabric, declared, {}, legal);
}

std::vector<Vicinity> vicinitiesOf(const inventory::Cluster& cluster,
                                   const std::vector<ExpandedFabric>& fabrics) {
  LegalNames legal;
  std::vector<Vicinity> out;
  for (const auto& one : fabrics)
    out.push_back(vicinityIn(cluster, *one.fabric, *one.declared,
                             fabrics.size() > 1 ? one.fabric->name + "-" : std::string(), legal));
  return out;
}

std::string slurmTree(const Vicinity& top) { return slurmTree(std::vector<Vicinity>{top}); }

std::string slurmTree(const std::vector<Vicinity>& tops) {
  std::string out = "# Written by muster from the inventory. TopologyPlugin=topology/tree\n";
  for (const auto& top : tops) {
    children(top, [&](const Vicinity& group, const std::string&) {
      out += group.children.empty()
                 ? fmt::format("SwitchName={} Nodes={}\n", group.name,
                               inventory::foldHostlist(group.nodes))
                 : fmt::format("SwitchName={} Switches={}\n", group.name, childNames(group));
    });
    if (!top.children.empty())
      out += fmt::format("SwitchName={} Switches={}\n", top.name, childNames(top));
  }
  return out;
}

std::string slurmYaml(const Vicinity& top, const Fabric& fabric) {
  return slurmYaml({top}, {&fabric});
}

std::string slurmYaml(const std::vector<Vicinity>& tops,
                      const std::vector<const Fabric*>& fabrics) {
  std::string out = fmt::format(
      "# Written by muster from the inventory.\n- topology: {}\n  cluster_default: true\n  tree:\n "
      "   switches:\n",
      tops.size() == 1 ? tops.front().name : "fabrics");
  for (const auto& top : tops) {
    if (tops.size() > 1 && top.children.empty()) continue;  // no node is on it
    out += fmt::format("      - switch: {}\n        children: {}\n", top.name,
                       inQuotes(childNames(top)));
    children(top, [&](const Vicinity& group, const std::string&) {
      out += fmt::format("      - switch: {}\n        {}: {}\n", group.name,
                         group.children.empty() ? "nodes" : "children",
                         inQuotes(group.children.empty() ? inventory::foldHostlist(group.nodes)
                                                         : childNames(group)));
    });
  }
  const auto has_domains = [](const Fabric* fabric) { return !fabric->nvlink_domains.empty(); };
  if (std::none_of(fabrics.begin(), fabrics.end(), has_domains)) return out;
  auto blocks = blocksOf(tops, fabrics);
  out += fmt::format(
      "- topology: nvlink\n  cluster_default: false\n  block:\n    block_sizes:\n      - {}\n    "
      "blocks:\n",
      blockSize(blocks));
  for (const auto& [name, nodes] : blocks)
    out += fmt::format("      - block: {}\n        nodes: {}\n", name,
                       inQuotes(inventory::foldHostlist(nodes)));
  return out;
}

std::string slurmBlocks(const Vicinity& top, const Fabric& fabric) {
  return slurmBlocks({top}, {&fabric});
}

std::string slurmBlocks(const std::vector<Vicinity>& tops,
                        const std::vector<const Fabric*>& fabrics) {
  auto blocks = blocksOf(tops, fabrics);
  if (blocks.empty()) return {};
  std::string out = "# Written by muster from the inventory. TopologyPlugin=topology/block\n";
  for (const auto& [name, nodes] : blocks)
    out += fmt::format("BlockName={} Nodes={}\n", name, inventory::foldHostlist(nodes));
  return out + fmt::format("BlockSizes={}\n", blockSize(blocks));
}

std::string kubernetesLabels(const Vicinity& top, const Fabric& fabric) {
  constexpr std::string_view kPrefix = "network.topology.nvidia.com/";
  std::map<std::string, std::string> domain_of;
  LegalNames legal;
  for (const auto& domain : fabric.nvlink_domains)
    for (const auto& node : domain.nodes) domain_of[node] = legal.of(domain.name);
  std::string out;
  auto write = [&](const Vicinity& group, const std::string& parent) {
    for (const auto& node : group.nodes) {
      out += fmt::format(
          "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: {}\n  labels:\n    {}leaf: {}\n    "
          "{}spine: {}\n",
          node, kPrefix, inQuotes(group.name), kPrefix, inQuotes(parent));
      if (parent != top.name) out += fmt::format("    {}core: {}\n", kPrefix, inQuotes(top.name));
      if (auto domain = domain_of.find(node); domain != domain_of.end())
        out += fmt::format("    {}accelerator: {}\n", kPrefix, inQuotes(domain->second));
    }
  };
  children(top, write);
  return out;
}

std::vector<std::string> rdmaDevices(const inventory::Profile& profile, const Fabric& fabric) {
  return inventory::hcasOn(profile, fabric);
}

std::string ncclEnvironment(const inventory::Profile& profile, const Fabric& fabric) {
  auto hcas = rdmaDevices(profile, fabric);
  for (auto& hca : hcas) hca += ":1";
  std::string out = fmt::format("# Written by muster from the inventory: profile {}, fabric {}.\n",
                                profile.name, fabric.name);
  out += fmt::format("NCCL_IB_HCA=={}\n",
                     fmt::join(hcas, ","));  // the second '=': these names, not all that begin so
  // Rails meet above the leaves only: staying on one's own rail keeps traffic off the spines.
  if (fabric.shape == FabricShape::RailOptimized && hcas.size() > 1) out += "NCCL_CROSS_NIC=0\n";
  if (fabric.roce)
    out += fmt::format("NCCL_IB_TC={}\nNCCL_IB_GID_INDEX={}\n", fabric.roce->trafficClass(),
                       fabric.roce->gid_index);
  return out;
}

std::string toPrometheus(const DiffReport& report) {
  auto fabric = report.fabric;
  std::string out = fmt::format(
      "# HELP muster_fabric_answered Whether the last discovery was complete.\n# TYPE "
      "muster_fabric_answered "
      "gauge\nmuster_fabric_answered{{fabric=\"{}\"}} {}\n",
      fabric, report.error.empty() ? 1 : 0);
  if (!report.error.empty()) return out;
  auto gauge = [&](std::string_view name, std::string_view help, std::size_t value) {
    out += fmt::format(
        "# HELP muster_fabric_{0} {1}\n# TYPE muster_fabric_{0} "
        "gauge\nmuster_fabric_{0}{{fabric=\"{2}\"}} {3}\n",
        name, help, fabric, value);
  };
  gauge("devices", "Devices found.", report.found.devices.size());
  gauge("links", "Links found.", report.found.links.size());
  gauge("excluded", "Deviations that the inventory excuses.", report.comparison.excluded.size());
  gauge("jobs", "What a technician has to do.", report.comparison.repairs.size());
  out +=
      "# HELP muster_fabric_deviations Deviations from the declaration by kind.\n# TYPE "
      "muster_fabric_deviations gauge\n";
  std::map<DeviationKind, std::size_t> kinds;
  for (int kind = 0; kind <= static_cast<int>(DeviationKind::WrongFirmware); ++kind)
    kinds[static_cast<DeviationKind>(kind)] = 0;
  for (const auto& one : report.comparison.deviations) ++kinds[one.kind];
  for (const auto& [kind, count] : kinds)
    out += fmt::format("muster_fabric_deviations{{fabric=\"{}\",kind=\"{}\"}} {}\n", fabric,
                       toString(kind), count);
  return out;
}

}  // namespace muster::fabric
