#include "validate/pair_partner.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::validate {
namespace {

/// Nothing runs there, and nothing can start there by itself. Every other word, and none, means that jobs may run.
bool isOutOfPool(std::string_view pool) { return pool == lifecycle::kPoolDrained || pool == "out"; }

}  // namespace

std::vector<std::string> rdmaDevicesOf(const agent::AgentGateway& agents, const NodeName& node) {
  const auto state = agents.state(node);
  if (!state || state->mode != agent::Mode::Disk) return {};
  const auto probe = state->probes.find("rdma.devices");
  if (probe == state->probes.end()) return {};
  std::vector<std::string> devices;
  for (std::size_t at = 0; at < probe->second.size();) {
    const auto end = std::min(probe->second.find_first_of(", ", at), probe->second.size());
    if (end > at) devices.push_back(probe->second.substr(at, end - at));
    at = end + 1;
  }
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  return devices;
}

std::vector<Partner> partnersOf(const inventory::Cluster& cluster, const inventory::Node& node, const agent::AgentGateway& agents,
                                const lifecycle::FactSet& facts) {
  std::vector<Partner> partners;
  const auto& nodes = cluster.nodes;
  const auto self = std::find_if(nodes.begin(), nodes.end(), [&](const auto& each) { return each.name == node.name; });
  if (self == nodes.end()) return partners;
  const auto place = static_cast<std::size_t>(self - nodes.begin());
  // Neighbours in pairs first (1↔2, 3↔4, …), so that a healthy cluster tests in one round; then whoever is free.
  const std::size_t first = place ^ 1u;
  for (std::size_t step = 0; step < nodes.size(); ++step) {
    const auto& candidate = nodes[(first + step) % nodes.size()];
    const auto& profile = cluster.profileOf(candidate);
    if (candidate.name == node.name || profile.fabric != cluster.profileOf(node).fabric) continue;
    const auto devices = rdmaDevicesOf(agents, candidate.name);
    if (devices.empty()) continue;
    const auto pool = facts.value(lifecycle::Subject(candidate.name), FacetName(std::string(lifecycle::kPoolFacet)));
    partners.push_back({candidate.name, devices, candidate.address.str(), !profile.pool.empty() && !isOutOfPool(pool.value_or(""))});
  }
  std::stable_partition(partners.begin(), partners.end(), [](const Partner& partner) { return !partner.pooled; });
  return partners;
}

std::string whyNotDisturb(const NodeName& node, const std::optional<lifecycle::Fact>& pool) {
  if (!pool) return fmt::format("whether {} runs jobs could not be read from its pool", node.str());
  if (isOutOfPool(pool->value)) return {};
  const auto seen = nlohmann::json::parse(pool->evidence, nullptr, false);
  const bool idle = pool->value == lifecycle::kPoolIn && seen.is_object() && seen.contains("jobs") && seen["jobs"] == false;
  if (idle) return {};
  return fmt::format("{} is in its pool and may be running jobs; drain it, or wait until they end", node.str());
}

PairHold::PairHold(std::set<NodeName>& busy, NodeName a, NodeName b) : busy_(busy), a_(std::move(a)), b_(std::move(b)) {
  busy_.insert(a_);
  busy_.insert(b_);
}

PairHold::~PairHold() {
  busy_.erase(a_);
  busy_.erase(b_);
}

}  // namespace muster::validate
