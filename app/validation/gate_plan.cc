// SPDX-License-Identifier: Apache-2.0
#include "app/validation/gate_plan.h"

#include "base/printable.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::app {
namespace {

constexpr std::string_view kGatePrefix = "gate.";

}  // namespace

bool isGate(const FacetName& facet) { return facet.str().starts_with(kGatePrefix); }

std::string nameOfGate(const FacetName& facet) { return facet.str().substr(kGatePrefix.size()); }

bool hasGate(const inventory::Cluster& cluster, const NodeName& name, const FacetName& gate) {
  const auto* node = cluster.findNode(name);
  if (!node || !isGate(gate)) return false;
  const auto& gates = cluster.profileOf(*node).gates;
  return std::ranges::find(gates, nameOfGate(gate)) != gates.end();
}

Result<std::set<FacetName>> gatesOf(const inventory::Cluster& cluster,
                                    const std::vector<NodeName>& nodes,
                                    const std::vector<std::string>& wanted) {
  std::set<std::string> declared;
  for (const auto& node : nodes)
    for (const auto& gate : cluster.profileOf(*cluster.findNode(node)).gates) declared.insert(gate);
  std::set<FacetName> out;
  for (const auto& gate : wanted) {
    if (!declared.contains(gate))
      return fail(
          ErrorCode::NotFound,
          fmt::format("no profile of these nodes has a gate {}; they have {}", printable(gate),
                      declared.empty() ? "none" : fmt::format("{}", fmt::join(declared, ", "))));
    out.insert(FacetName(std::string(kGatePrefix) + gate));
  }
  if (wanted.empty())
    for (const auto& gate : declared) out.insert(FacetName(std::string(kGatePrefix) + gate));
  if (out.empty())
    return fail(ErrorCode::InvalidInput, "the profiles of these nodes have no gates");
  return out;
}

Result<void> requireGates(const inventory::Cluster& cluster, const std::vector<NodeName>& nodes,
                          const std::vector<std::string>& wanted) {
  if (wanted.empty()) return {};
  if (const auto gates = gatesOf(cluster, nodes, wanted); !gates)
    return fail(ErrorCode::InvalidInput, gates.error().text() + "; nothing was done");
  return {};
}

Result<void> onlyGates(const lifecycle::Plan& plan) {
  std::set<std::string> others;
  for (const auto& action : plan.actions) {
    const auto& facet = action.facet.facet;
    if (!isGate(facet) && facet.str() != "certificate" && facet.str() != lifecycle::kPoolFacet)
      others.insert(action.id);
  }
  if (others.empty()) return {};
  return fail(
      ErrorCode::Conflict,
      fmt::format(
          "these nodes are not as declared yet; `muster apply` does that and runs their gates: {}",
          fmt::join(others, ", ")));
}

GatesByNode gatesSeenBefore(const lifecycle::FactSet& facts, const std::vector<NodeName>& nodes,
                            const std::set<FacetName>& gates, WallTime since) {
  GatesByNode out;
  for (const auto& node : nodes)
    for (const auto& fact : facts.of(lifecycle::Subject(node)))
      if (gates.contains(fact.facet) && fact.observed_at < since)
        out[fact.subject].push_back(fact.facet);
  return out;
}

lifecycle::FactSet without(lifecycle::FactSet facts, const GatesByNode& gates) {
  for (const auto& [subject, facets] : gates)
    for (const auto& facet : facets) facts.forget(subject, facet);
  return facts;
}

}  // namespace muster::app
