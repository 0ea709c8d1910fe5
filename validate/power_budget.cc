// SPDX-License-Identifier: Apache-2.0
#include "validate/power_budget.h"

#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/model/racks.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::validate {
namespace {

// On the high side of eight-GPU machines of 700 W GPUs, whose supplies are specified for about 10.2
// kW.
constexpr int kWattsAGpu = 1'150, kWattsAHost = 1'000;

}  // namespace

int wattsOf(const inventory::Profile& profile) {
  return profile.power_watts.value_or(kWattsAHost + kWattsAGpu * profile.expect.gpus.value_or(0));
}

std::optional<int> PowerBudget::limitOf(const std::string& rack) const {
  const auto found = cluster_.racks.find(rack);
  if (found == cluster_.racks.end()) return std::nullopt;
  return std::min(found->second.power_watts,
                  found->second.cooling_watts.value_or(found->second.power_watts));
}

std::optional<std::string> PowerBudget::take(const inventory::Node& node, Time now) {
  if (node.rack.empty() || held_.contains(node.name)) return std::nullopt;
  auto& load = racks_[node.rack];
  const int watts = wattsOf(cluster_.profileOf(node));
  // A node that needs more than its rack may draw runs alone: what is declared cannot be right
  // then, but it is no reason never to test it.
  if (const auto limit = limitOf(node.rack); limit && load.watts > 0 && load.watts + watts > *limit)
    return fmt::format("power of rack {}: {:.1f} of {:.1f} kW are in use, a node takes {:.1f}",
                       node.rack, load.watts / 1e3, *limit / 1e3, watts / 1e3);
  if (load.last_start && now - *load.last_start < kStagger)
    return fmt::format("the start of another node in rack {}: loads step up one by one", node.rack);
  load.last_start = now;
  load.watts += watts;
  held_[node.name] = {node.rack, watts};
  return std::nullopt;
}

std::optional<std::string> PowerBudget::takeAll(const std::vector<inventory::Node>& nodes,
                                                Time now) {
  if (nodes.empty()) return std::nullopt;
  const auto& rack = nodes.front().rack;
  int watts = 0;
  for (const auto& node : nodes) watts += wattsOf(cluster_.profileOf(node));
  auto& load = racks_[rack];
  if (const auto limit = limitOf(rack); limit && load.watts + watts > *limit)
    return fmt::format(
        "power of rack {}: {:.1f} of {:.1f} kW are in use, {} nodes together take {:.1f}", rack,
        load.watts / 1e3, *limit / 1e3, nodes.size(), watts / 1e3);
  load.last_start = now;
  for (const auto& node : nodes) takeRunning(node);
  return std::nullopt;
}

void PowerBudget::takeRunning(const inventory::Node& node) {
  if (node.rack.empty() || held_.contains(node.name)) return;
  const int watts = wattsOf(cluster_.profileOf(node));
  racks_[node.rack].watts += watts;
  held_[node.name] = {node.rack, watts};
}

void PowerBudget::giveBack(const NodeName& node) {
  const auto held = held_.find(node);
  if (held == held_.end()) return;
  racks_[held->second.rack].watts -= held->second.watts;
  held_.erase(held);
}

int PowerBudget::turns(const std::string& rack) const {
  const auto limit = limitOf(rack);
  if (!limit) return 1;
  const auto [known, fresh] = turns_.try_emplace(rack, 1);
  if (!fresh) return known->second;
  int watts = 0, largest = 1;
  for (const auto& node : cluster_.nodes)
    if (node.rack == rack) {
      const int own = wattsOf(cluster_.profileOf(node));
      watts += own, largest = std::max(largest, own);
    }
  const int usable =
      std::max(*limit - largest + 1,
               largest);  // what surely runs at once: a place that is a watt too small stays empty
  return known->second = std::max(1, (watts + usable - 1) / usable);
}

}  // namespace muster::validate
