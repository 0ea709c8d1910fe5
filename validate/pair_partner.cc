// SPDX-License-Identifier: Apache-2.0
#include "validate/pair_partner.h"

#include "base/json_input.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "validate/checks/rdma_devices.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::validate {
namespace {

/// Nothing runs there, and nothing can start there by itself. Every other word, and none, means
/// that jobs may run.
bool isOutOfPool(std::string_view pool) { return pool == lifecycle::kPoolDrained || pool == "out"; }

/// What a probe lists: "mlx5_0,mlx5_1".
std::vector<std::string> wordsOf(const gateway::AgentState& state, const std::string& probe) {
  std::vector<std::string> words;
  const auto found = state.probes.find(probe);
  const std::string text = found == state.probes.end() ? "" : found->second;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find_first_of(", ", at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// Soft-RoCE stands for any fabric, as in the twin; a device of which no layer is told may be of
/// this one.
bool isOfAnotherLayer(const std::string& device, const std::vector<std::string>& layers,
                      std::string_view layer) {
  if (isSoftRdma(device)) return false;
  return std::any_of(layers.begin(), layers.end(), [&](const std::string& word) {
    return word.starts_with(device + "=") && word.substr(device.size() + 1) != layer;
  });
}

/// Whether the one is on every fabric that the other is on.
bool reaches(const inventory::Profile& one, const inventory::Profile& other) {
  if (other.fabric.empty()) return one.fabric.empty();
  const auto fabrics = inventory::fabricsOf(other);
  return std::all_of(fabrics.begin(), fabrics.end(),
                     [&](const std::string& name) { return inventory::isOn(one, name); });
}

}  // namespace

std::vector<std::string> railDevicesOf(const inventory::Cluster& cluster,
                                       const inventory::Node& node,
                                       const gateway::AgentGateway& agents, const std::string& on) {
  const auto state = agents.state(node.name);
  if (!state || state->mode != wire::Mode::Disk) return {};
  const auto reported = wordsOf(*state, "rdma.devices");
  const auto& profile = cluster.profileOf(node);
  const auto& name = on.empty() ? profile.fabric : on;
  std::vector<std::string> devices;
  for (const auto& rail : profile.rails)
    if (inventory::fabricOfHca(profile, rail.hca) == name &&
        std::find(reported.begin(), reported.end(), rail.hca) != reported.end())
      devices.push_back(rail.hca);
  if (!devices.empty() || !profile.other_fabrics.empty()) return devices;
  const auto fabric = cluster.fabrics.find(name);
  const auto layers = wordsOf(*state, "rdma.layers");
  for (const auto& device : reported)
    if (fabric == cluster.fabrics.end() ||
        !isOfAnotherLayer(device, layers, fabric->second.roce ? "Ethernet" : "InfiniBand"))
      devices.push_back(device);
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  return devices;
}

std::vector<Partner> partnersOf(const inventory::Cluster& cluster, const inventory::Node& node,
                                const gateway::AgentGateway& agents,
                                const lifecycle::FactSet& facts) {
  std::vector<Partner> partners;
  const auto& nodes = cluster.nodes;
  const auto self = std::find_if(nodes.begin(), nodes.end(),
                                 [&](const auto& each) { return each.name == node.name; });
  if (self == nodes.end()) return partners;
  const auto place = static_cast<std::size_t>(self - nodes.begin());
  // Neighbours in pairs first (1↔2, 3↔4, …), so that a healthy cluster tests in one round; then
  // whoever is free.
  const std::size_t first = place ^ 1u;
  for (std::size_t step = 0; step < nodes.size(); ++step) {
    const auto& candidate = nodes[(first + step) % nodes.size()];
    const auto& profile = cluster.profileOf(candidate);
    if (candidate.name == node.name || !reaches(profile, cluster.profileOf(node))) continue;
    const auto devices = railDevicesOf(cluster, candidate, agents, cluster.profileOf(node).fabric);
    if (devices.empty()) continue;
    const auto pool = facts.value(lifecycle::Subject(candidate.name),
                                  FacetName(std::string(lifecycle::kPoolFacet)));
    partners.push_back({candidate.name, devices, candidate.address.str(),
                        !profile.pool.empty() && !isOutOfPool(pool.value_or(""))});
  }
  std::stable_partition(partners.begin(), partners.end(),
                        [](const Partner& partner) { return !partner.pooled; });
  return partners;
}

std::string whyNotDisturb(const NodeName& node, const std::optional<lifecycle::Fact>& pool) {
  if (!pool) return fmt::format("whether {} runs jobs could not be read from its pool", node.str());
  if (isOutOfPool(pool->value)) return {};
  const auto seen = jsonOrNone(pool->evidence, kKeptJson);
  const bool idle = pool->value == lifecycle::kPoolIn && seen.is_object() &&
                    seen.contains("jobs") && seen["jobs"] == false;
  if (idle) return {};
  return fmt::format("{} is in its pool and may be running jobs; drain it, or wait until they end",
                     node.str());
}

PairHold::PairHold(std::set<NodeName>& busy, NodeName a, NodeName b)
    : busy_(busy), a_(std::move(a)), b_(std::move(b)) {
  busy_.insert(a_);
  busy_.insert(b_);
}

PairHold::~PairHold() {
  busy_.erase(a_);
  busy_.erase(b_);
}

}  // namespace muster::validate
