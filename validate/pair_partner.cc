#include "validate/pair_partner.h"

#include <algorithm>

namespace muster::validate {

std::string rdmaDeviceOf(const agent::AgentGateway& agents, const NodeName& node) {
  const auto state = agents.state(node);
  if (!state || state->mode != agent::Mode::Disk) return {};
  const auto probe = state->probes.find("rdma.devices");
  if (probe == state->probes.end()) return {};
  return probe->second.substr(0, probe->second.find_first_of(", "));
}

std::optional<Partner> choosePartner(const inventory::Cluster& cluster, const inventory::Node& node, const agent::AgentGateway& agents,
                                     const std::set<NodeName>& busy) {
  const auto& nodes = cluster.nodes;
  const auto self = std::find_if(nodes.begin(), nodes.end(), [&](const auto& each) { return each.name == node.name; });
  if (self == nodes.end()) return std::nullopt;
  const auto place = static_cast<std::size_t>(self - nodes.begin());
  // Neighbours in pairs first (1↔2, 3↔4, …), so that a healthy cluster tests in one round; then whoever is free.
  const std::size_t first = place ^ 1u;
  for (std::size_t step = 0; step < nodes.size(); ++step) {
    const auto& candidate = nodes[(first + step) % nodes.size()];
    if (candidate.name == node.name || busy.contains(candidate.name)) continue;
    if (cluster.profileOf(candidate).fabric != cluster.profileOf(node).fabric) continue;
    if (auto device = rdmaDeviceOf(agents, candidate.name); !device.empty()) return Partner{candidate.name, device, candidate.address.str()};
  }
  return std::nullopt;
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
