// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/waves.h"

#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/model/rollout_policy.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace muster::lifecycle {
namespace {

/// One node of each group in turn.
std::vector<NodeName> inTurn(std::vector<std::deque<NodeName>> groups, std::size_t count) {
  std::vector<NodeName> out;
  for (bool any = true; any && out.size() < count;) {
    any = false;
    for (auto& group : groups) {
      if (group.empty() || out.size() >= count) continue;
      out.push_back(group.front());
      group.pop_front();
      any = true;
    }
  }
  return out;
}

std::vector<NodeName> canariesOf(const inventory::Cluster& cluster,
                                 const std::vector<NodeName>& nodes,
                                 const inventory::Canary& rule) {
  std::map<std::pair<std::string, std::string>, std::deque<NodeName>> by_place;  // (rack, profile)
  std::vector<std::string> racks;
  for (const auto& name : nodes) {
    const auto* node = cluster.findNode(name);
    const std::string rack = node ? node->rack : "",
                      profile = node ? cluster.profileOf(*node).name : "";
    if (std::find(racks.begin(), racks.end(), rack) == racks.end()) racks.push_back(rack);
    by_place[{rack, profile}].push_back(name);
  }
  if (rule.racks) {
    std::vector<NodeName> out;
    for (std::size_t i = 0; i < racks.size() && i < static_cast<std::size_t>(*rule.racks); ++i)
      for (const auto& [place, members] : by_place)
        if (place.first == racks[i]) out.insert(out.end(), members.begin(), members.end());
    return out;
  }
  // Profiles first, so that each kind of node has a canary even where there are few; then racks.
  std::map<std::string, std::vector<std::deque<NodeName>>> by_profile;
  for (auto& [place, members] : by_place) by_profile[place.second].push_back(std::move(members));
  std::vector<std::deque<NodeName>> kinds;
  for (auto& [profile, groups] : by_profile) {
    const auto spread = inTurn(std::move(groups), nodes.size());
    kinds.emplace_back(spread.begin(), spread.end());
  }
  return inTurn(std::move(kinds), static_cast<std::size_t>(rule.nodes));
}

}  // namespace

std::vector<Wave> makeWaves(const inventory::Cluster& cluster, std::vector<NodeName> nodes,
                            const inventory::RolloutPolicy& policy) {
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return inventory::naturalLess(a.str(), b.str()); });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<Wave> waves;
  auto canaries = canariesOf(cluster, nodes, policy.canary);
  const std::set<NodeName> first(canaries.begin(), canaries.end());
  if (!canaries.empty()) waves.push_back({"canary", std::move(canaries)});
  std::vector<NodeName> rest;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(rest),
               [&](const auto& node) { return !first.contains(node); });
  std::vector<int> shares = policy.waves;
  if (shares.empty() || shares.back() < 100) shares.push_back(100);
  std::size_t taken = 0;
  for (const int share : shares) {
    const auto until = (nodes.size() * static_cast<std::size_t>(share) + 99) /
                       100;  // rounded up: a wave of few nodes is none
    const auto end = std::min(rest.size(), until > first.size() ? until - first.size() : 0);
    if (end <= taken) continue;
    waves.push_back({fmt::format("to {} %", share),
                     {rest.begin() + static_cast<std::ptrdiff_t>(taken),
                      rest.begin() + static_cast<std::ptrdiff_t>(end)}});
    taken = end;
  }
  return waves;
}

}  // namespace muster::lifecycle
