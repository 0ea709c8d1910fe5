// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/window.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric_positions.h"
#include "inventory/model/profile.h"
#include "inventory/model/rollout_policy.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kMaxNodesNamed = 8;

const inventory::Ceiling& ceilingOf(const inventory::Unavailability& all, DomainKind kind) {
  switch (kind) {
    case DomainKind::Pool:
      return all.pool;
    case DomainKind::Rack:
      return all.rack;
    case DomainKind::Su:
      return all.su;
    case DomainKind::Leaf:
      break;
  }
  return all.leaf;
}

std::size_t limitUnder(const inventory::Ceiling& ceiling, std::size_t size) {
  std::size_t limit = size;
  if (ceiling.nodes) limit = std::min(limit, static_cast<std::size_t>(*ceiling.nodes));
  if (ceiling.percent)
    limit = std::min(
        limit, std::max<std::size_t>(1, size * static_cast<std::size_t>(*ceiling.percent) / 100));
  return limit;
}

}  // namespace

std::size_t limitOf(const inventory::Unavailability& ceilings, DomainKind kind, std::size_t size) {
  return limitUnder(ceilingOf(ceilings, kind), size);
}

std::string_view toString(DomainKind kind) {
  switch (kind) {
    case DomainKind::Pool:
      return "pool";
    case DomainKind::Rack:
      return "rack";
    case DomainKind::Su:
      return "su";
    case DomainKind::Leaf:
      break;
  }
  return "leaf";
}

std::string Domain::str() const { return fmt::format("{} {}", toString(kind), name); }

std::map<NodeName, std::vector<Domain>> domainsOf(const inventory::Cluster& cluster,
                                                  const LeafSwitchesOf& leaves) {
  std::map<NodeName, std::vector<Domain>> out;
  const auto units = inventory::scalableUnitsOf(cluster);
  const auto cabled = leaves ? leaves(cluster) : std::map<std::string, std::set<std::string>>();
  for (const auto& node : cluster.nodes) {
    auto& domains = out[node.name];
    const auto& profile = cluster.profileOf(node);
    if (!profile.pool.empty()) domains.push_back({DomainKind::Pool, profile.pool});
    if (!node.rack.empty()) domains.push_back({DomainKind::Rack, node.rack});
    if (const auto unit = units.find(node.name); unit != units.end())
      domains.push_back({DomainKind::Su, unit->second});
    if (const auto found = cabled.find(node.name.str()); found != cabled.end())
      for (const auto& leaf : found->second) domains.push_back({DomainKind::Leaf, leaf});
  }
  return out;
}

Window::Window(std::map<NodeName, std::vector<Domain>> domains,
               const inventory::Unavailability& ceilings)
    : domains_(std::move(domains)) {
  for (auto& [node, groups] : domains_) {
    std::erase_if(groups,
                  [&](const Domain& domain) { return !ceilingOf(ceilings, domain.kind).limits(); });
    for (const auto& domain : groups) ++groups_[domain].size;
  }
  for (auto& [domain, group] : groups_) group.limit = limitOf(ceilings, domain.kind, group.size);
}

std::string Window::whyNot(const NodeName& node) const {
  const auto mine = domains_.find(node);
  if (out_.contains(node) || mine == domains_.end()) return {};
  for (const auto& domain : mine->second) {
    const auto& group = groups_.at(domain);
    if (group.out.size() < group.limit) continue;
    std::vector<std::string> names;
    for (const auto& other : group.out)
      if (names.size() < kMaxNodesNamed) names.push_back(other.str());
    return fmt::format("{} of {} nodes of {} are out of work, and {} may be: {}{}",
                       group.out.size(), group.size, domain.str(), group.limit,
                       inventory::foldHostlist(names),
                       group.out.size() > kMaxNodesNamed ? ", …" : "");
  }
  return {};
}

void Window::out(const NodeName& node) {
  if (!out_.insert(node).second) return;
  if (const auto mine = domains_.find(node); mine != domains_.end())
    for (const auto& domain : mine->second) groups_.at(domain).out.insert(node);
}

void Window::in(const NodeName& node) {
  if (out_.erase(node) == 0) return;
  if (const auto mine = domains_.find(node); mine != domains_.end())
    for (const auto& domain : mine->second) groups_.at(domain).out.erase(node);
}

std::vector<NodeName> Window::watched() const {
  std::vector<NodeName> nodes;
  for (const auto& [node, groups] : domains_)
    if (!groups.empty()) nodes.push_back(node);
  return nodes;
}

}  // namespace muster::lifecycle
