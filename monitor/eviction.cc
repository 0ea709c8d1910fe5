// SPDX-License-Identifier: Apache-2.0
#include "monitor/eviction.h"

#include "base/json_input.h"
#include "base/json_members.h"
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "inventory/model/profile.h"
#include "monitor/health_phase.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::monitor {
namespace {

using namespace lifecycle;
using nlohmann::json;

constexpr std::size_t kNamedReasons = 5;
constexpr std::string_view kCertificateFacet = "certificate";
constexpr std::string_view kValid = "valid:";

json evidenceOf(const Fact& fact) {
  auto parsed = jsonOrNone(fact.evidence, kKeptJson);
  return parsed.is_object() ? parsed : json::object();
}

std::optional<Exclusion> byQuarantine(const Subject& subject, const FactSet& facts) {
  const auto* fact = facts.find(subject, FacetName(std::string(kQuarantineFacet)));
  if (!fact || fact->value != kQuarantineHeld) return std::nullopt;
  Exclusion out;
  out.facet = {subject, fact->facet};
  out.reason = "it is in quarantine: " + textOf(evidenceOf(*fact), "reason");
  out.what_to_do = quarantineRemoveAdvice(subject.node());
  return out;
}

/// The strongest of the node's health facts.
std::optional<Exclusion> byHealth(const inventory::Cluster& cluster, const Subject& subject,
                                  const FactSet& facts) {
  std::optional<Exclusion> out;
  const int reboots =
      std::atoi(facts.value(subject, FacetName(std::string(kRebootsFacet))).value_or("0").c_str());
  const bool in_vain = reboots > 0 && reboots >= cluster.monitor->reboots;
  for (const auto& fact : facts.of(subject)) {
    const auto action = actionWordOf(fact);
    if (action.empty()) continue;
    const bool repairable =
        action == toString(HealthAction::Reset) || action == toString(HealthAction::Reboot);
    const bool hold = action == toString(HealthAction::Quarantine) ||
                      action == toString(HealthAction::Rma) || (repairable && in_vain);
    if (out && (out->quarantine || !hold)) continue;
    Exclusion found;
    found.facet = {subject, fact.facet};
    found.reason =
        fmt::format("{} ({}{})", symptomsOf(fact), action,
                    repairable && in_vain ? fmt::format(", after {} reboots", reboots) : "");
    found.evidence = fact.evidence;
    const auto rows = evidenceOf(fact).value("symptoms", json::array());
    if (rows.is_array() && !rows.empty() && rows.front().is_object())
      found.what_to_do = textOf(rows.front(), "advice");
    found.quarantine = hold;
    out = std::move(found);
  }
  return out;
}

std::optional<Exclusion> byCertificate(const inventory::Cluster& cluster, const Subject& subject,
                                       const FactSet& facts) {
  const auto* fact = facts.find(subject, FacetName(std::string(kCertificateFacet)));
  if (!fact || fact->value.starts_with(kValid)) return std::nullopt;
  const auto evidence = evidenceOf(*fact);
  if (textOf(evidence, "void_by") == "declaration" &&
      cluster.monitor->on_config_change == inventory::OnConfigChange::Ignore)
    return std::nullopt;
  auto why = textOf(evidence, "void_because");
  if (why.empty()) why = textOf(evidence, "error");
  Exclusion out;
  out.facet = {subject, fact->facet};
  out.reason = why.empty() ? "it has no certificate" : "its certificate is void: " + why;
  out.evidence = fact->evidence;
  out.what_to_do = fmt::format(
      "`muster plan --nodes {}` shows what it takes to certify it again, `muster apply` does it",
      subject.str());
  return out;
}

struct PoolCount {
  int working = 0;  ///< take jobs now
  int taken = 0;    ///< were taken out by the monitor and are not back
  std::vector<Exclusion> fresh, ordered;
};

Trip tripOf(const std::string& pool, const PoolCount& count, const std::vector<Exclusion>& held,
            int would_be_out, int allowed) {
  Trip out{pool, would_be_out, count.working + count.taken, allowed, {}, {}};
  for (const auto& exclusion : held) {
    out.nodes.insert(exclusion.node);
    if (out.reasons.size() < kNamedReasons)
      out.reasons.push_back(exclusion.node.str() + ": " + exclusion.reason);
  }
  return out;
}

}  // namespace

std::string Trip::text() const {
  return fmt::format(
      "{} of the {} nodes of pool {} would be drained, the limit without an operator is {}: no "
      "more "
      "nodes are drained there; {}",
      would_be_out, of, pool, allowed, fmt::join(reasons, "; "));
}

std::optional<Exclusion> unhealthy(const inventory::Cluster& cluster, const inventory::Node& node,
                                   const FactSet& facts) {
  const Subject subject(node.name);
  auto out = byQuarantine(subject, facts);
  if (!out) out = byHealth(cluster, subject, facts);
  return out;
}

std::optional<Exclusion> excluded(const inventory::Cluster& cluster, const inventory::Node& node,
                                  const FactSet& facts) {
  auto out = unhealthy(cluster, node, facts);
  if (!out) out = byCertificate(cluster, Subject(node.name), facts);
  if (!out) return std::nullopt;
  out->node = node.name;
  out->pool = cluster.profileOf(node).pool;
  return out;
}

Decision decide(const inventory::Cluster& cluster, const FactSet& facts,
                const BreakerStates& breakers) {
  Decision out;
  std::map<std::string, PoolCount> pools;
  for (const auto& node : cluster.nodes) {
    const auto* place = facts.find(Subject(node.name), FacetName(std::string(kPoolFacet)));
    const auto& pool = cluster.profileOf(node).pool;
    if (pool.empty()) continue;
    if (!place) {
      out.unknown.insert(node.name);
      continue;
    }
    auto& count = pools[pool];
    const auto evidence = evidenceOf(*place);
    const bool ordered = flagOf(evidence, "ordered");
    const bool ours = ordered && textOf(evidence, "cause") == toString(ActionCause::Admission);
    const bool takes = mayTakeJobs(place->value);
    const auto state = breakers.find(pool);
    const bool agreed =
        state != breakers.end() && !state->second.open && state->second.nodes.contains(node.name);
    if (ours && !agreed)
      ++count.taken;  // what a person has let go is no sign of a mistake any more
    if (takes && !ordered) ++count.working;
    auto exclusion = excluded(cluster, node, facts);
    if (!exclusion) continue;
    out.in_trouble.insert(node.name);
    exclusion->ordered = ordered;
    if (!takes && exclusion->quarantine) out.quarantine.push_back(*exclusion);
    if (takes && ours)
      count.ordered.push_back(std::move(*exclusion));
    else if (takes && !ordered)  // somebody else's drain is somebody else's to finish
      count.fresh.push_back(std::move(*exclusion));
  }
  for (auto& [pool, count] : pools) {
    const auto state = breakers.find(pool);
    const auto said = state == breakers.end() ? BreakerState{} : state->second;
    std::vector<Exclusion> asked;  // of these a person has not yet said that they may go
    for (auto& exclusion : count.fresh)
      (!said.open && said.nodes.contains(exclusion.node) ? count.ordered : asked)
          .push_back(std::move(exclusion));
    const int allowed =
        std::max(cluster.monitor->breaker.nodes,
                 (count.working + count.taken) * cluster.monitor->breaker.percent / 100);
    const int would_be_out = count.taken + static_cast<int>(asked.size());
    if (!asked.empty() && (said.open || would_be_out > allowed)) {
      out.trips.push_back(tripOf(pool, count, asked, would_be_out, allowed));
      std::move(asked.begin(), asked.end(), std::back_inserter(out.suppressed));
      asked.clear();
    }
    std::move(count.ordered.begin(), count.ordered.end(), std::back_inserter(out.drain));
    std::move(asked.begin(), asked.end(), std::back_inserter(out.drain));
  }
  return out;
}

}  // namespace muster::monitor
