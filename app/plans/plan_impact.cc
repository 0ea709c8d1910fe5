// SPDX-License-Identifier: Apache-2.0
#include "app/plans/plan_impact.h"

#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "lifecycle/model/unread.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

namespace muster::app {
namespace {

using lifecycle::Action;
using lifecycle::Disruption;
using lifecycle::Subject;

bool isDrain(const Action& action) { return action.id.ends_with(lifecycle::kDrainSuffix); }

std::chrono::seconds longestChain(const lifecycle::Plan& plan) {
  std::unordered_map<std::string_view, std::chrono::seconds> ends;
  ends.reserve(plan.actions.size());
  std::chrono::seconds longest{0};
  for (const auto& action : plan.actions) {  // each stands after those it needs
    if (!action.blocked.empty()) continue;
    std::chrono::seconds start{0};
    for (const auto& need : action.needs)
      if (const auto found = ends.find(need); found != ends.end())
        start = std::max(start, found->second);
    const auto end = start + action.expected;
    ends[action.id] = end;
    longest = std::max(longest, end);
  }
  return longest;
}

/// Of every domain that loses nodes.
std::vector<DomainImpact> domainsOf(const inventory::Cluster& cluster,
                                    const lifecycle::FactSet& facts,
                                    const std::vector<NodeName>& taken_out,
                                    const lifecycle::LeafSwitchesOf& leaves) {
  if (taken_out.empty()) return {};
  const FacetName pool{std::string(lifecycle::kPoolFacet)};
  const std::set<NodeName> taken(taken_out.begin(), taken_out.end());
  std::map<lifecycle::Domain, DomainImpact> all;
  for (const auto& [node, domains] : lifecycle::domainsOf(cluster, leaves)) {
    const bool drained = facts.value(Subject(node), pool) == lifecycle::kPoolDrained;
    for (const auto& domain : domains) {
      auto& impact = all[domain];
      ++impact.size;
      if (taken.contains(node))
        ++impact.taken_out;
      else if (drained)
        ++impact.already_out;
    }
  }
  std::vector<DomainImpact> out;
  for (auto& [domain, impact] : all) {
    if (impact.taken_out == 0) continue;
    impact.domain = domain;
    impact.limit = lifecycle::limitOf(cluster.limits->max_unavailable, domain.kind, impact.size);
    out.push_back(std::move(impact));
  }
  return out;
}

}  // namespace

PlanImpact impactOf(const inventory::Cluster& cluster, const lifecycle::FactSet& facts,
                    const lifecycle::Plan& plan, const lifecycle::LeafSwitchesOf& leaves) {
  PlanImpact out;
  out.actions = plan.actions.size();
  const Subject* last = nullptr;
  std::set<std::string_view> subjects, wiped, reset;
  for (const auto& action : plan.actions) {
    if (!last || *last != action.facet.subject) subjects.insert(action.facet.subject.str());
    last = &action.facet.subject;
    if (!action.blocked.empty()) {
      ++out.blocked;
      continue;
    }
    if (last->isCluster()) continue;
    if (isDrain(action)) out.taken_out.push_back(last->node());
    if (action.disruption == Disruption::Wipe && wiped.insert(last->str()).second)
      out.wiped.push_back(last->node());
    if (action.disruption >= Disruption::Reset && reset.insert(last->str()).second)
      out.reset.push_back(last->node());
  }
  out.subjects = subjects.size();
  out.domains = domainsOf(cluster, facts, out.taken_out, leaves);
  out.run_limit = static_cast<std::size_t>(cluster.limits->per_run.value_or(0));
  out.at_least = longestChain(plan);
  for (const auto& node : cluster.nodes) {
    const Subject subject(node.name);
    if (!plan.policy.only.empty() && !plan.policy.only.contains(subject)) continue;
    for (const auto& unread : lifecycle::unreadOf(facts, subject))
      out.unread[fmt::format("{} ({})", unread.what, unread.code)].push_back(node.name);
  }
  return out;
}

std::vector<NodeName> uncheckedNeighbours(const inventory::Cluster& cluster,
                                          const lifecycle::Policy& policy, const PlanImpact& impact,
                                          const lifecycle::LeafSwitchesOf& leaves) {
  std::vector<NodeName> out;
  if (policy.only.empty() || impact.domains.empty()) return out;
  std::set<lifecycle::Domain> losing;
  for (const auto& domain : impact.domains) losing.insert(domain.domain);
  const auto domains = lifecycle::domainsOf(cluster, leaves);
  for (const auto& node : cluster.nodes) {
    if (policy.only.contains(Subject(node.name))) continue;
    const auto its = domains.find(node.name);
    if (its != domains.end() && std::ranges::any_of(its->second, [&losing](const auto& domain) {
          return losing.contains(domain);
        }))
      out.push_back(node.name);
  }
  return out;
}

namespace {

/// Empty: it is within.
std::string exceededRunLimit(const PlanImpact& impact, std::size_t taken_out_before) {
  const auto all = taken_out_before + impact.taken_out.size();
  if (impact.run_limit == 0 || impact.taken_out.empty() || all <= impact.run_limit) return {};
  return fmt::format(
      "one run: {} nodes would be taken out of work, at most {} may (limits.per_run)", all,
      impact.run_limit);
}

}  // namespace

Result<void> requireWithinRunLimit(const PlanImpact& impact) {
  const auto exceeded = exceededRunLimit(impact, 0);
  if (exceeded.empty()) return {};
  return fail(ErrorCode::Denied,
              exceeded +
                  "; nothing was done. Roll it out to fewer nodes at a time (`--nodes`), one "
                  "rollout after the other, or raise limits.per_run of the inventory");
}

std::vector<std::string> exceededLimits(const PlanImpact& impact, std::size_t taken_out_before) {
  std::vector<std::string> out;
  if (auto one_run = exceededRunLimit(impact, taken_out_before); !one_run.empty())
    out.push_back(std::move(one_run));
  for (const auto& domain : impact.domains)
    if (domain.exceeds())
      out.push_back(fmt::format(
          "{}: {} of {} nodes would be out of work{}, at most {} may", domain.domain.str(),
          domain.taken_out + domain.already_out, domain.size,
          domain.already_out == 0 ? std::string()
                                  : fmt::format(" ({} are drained already)", domain.already_out),
          domain.limit));
  return out;
}

Result<void> requireWithinLimits(const PlanImpact& impact, std::size_t taken_out_before) {
  const auto exceeded = exceededLimits(impact, taken_out_before);
  if (exceeded.empty()) return {};
  std::string text = "the plan takes too many nodes out of work at once; nothing was done";
  for (const auto& line : exceeded) text += "\n  " + line;
  return fail(ErrorCode::Denied,
              text +
                  "\nchange them in waves: declare the new driver, image or firmware, leave the "
                  "profile as it was, and `muster rollout start`; or take fewer nodes at once: "
                  "`muster apply --nodes …`; `limits` of the inventory says how many");
}

}  // namespace muster::app
