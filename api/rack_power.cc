// SPDX-License-Identifier: Apache-2.0
#include "api/rack_power.h"

#include "bmc/health_watch.h"
#include "bmc/machine_power.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "validate/power_budget.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::api {
namespace {

/// BMCs are read every five minutes, some late.
constexpr auto kPowerIsKnownFor = 3 * bmc::kHealthEvery;

}  // namespace

void RackPower::add(const inventory::Cluster& cluster, const inventory::Node& node,
                    const lifecycle::Fact* health, WallTime now) {
  const auto& profile = cluster.profileOf(node);
  full_load_watts += validate::wattsOf(profile);
  estimated_nodes += !profile.power_watts;
  const auto power = health ? bmc::machinePowerIn(health->evidence) : std::nullopt;
  if (!power || now - health->observed_at > kPowerIsKnownFor) {
    unread.push_back(node.name.str());
    return;
  }
  drawn_watts += power->watts;
  oldest_at = std::min(oldest_at.value_or(health->observed_at), health->observed_at);
  readings.push_back({node.name.str(), power->watts, power->of, health->observed_at});
}

std::map<std::string, RackPower> powerByRack(const inventory::Cluster& cluster,
                                             const lifecycle::FactSet& facts, WallTime now) {
  const FacetName health{std::string(bmc::kBmcHealthFacet)};
  std::map<std::string, RackPower> out;
  for (const auto& node : cluster.nodes)
    if (!node.rack.empty())
      out[node.rack].add(cluster, node, facts.find(lifecycle::Subject(node.name), health), now);
  return out;
}

nlohmann::json powerJson(const RackPower& power, std::optional<int> limit_watts) {
  nlohmann::json out = {{"drawn_watts", power.drawn_watts}};
  if (power.oldest_at) out["oldest_at"] = muster::toString(*power.oldest_at);
  if (limit_watts) {
    out["limit_watts"] = *limit_watts;
    out["full_load_watts"] = power.full_load_watts;
    out["estimated_nodes"] = power.estimated_nodes;
  }
  return out;
}

}  // namespace muster::api
