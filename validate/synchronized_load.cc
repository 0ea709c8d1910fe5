// SPDX-License-Identifier: Apache-2.0
#include "validate/synchronized_load.h"

#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::validate {
namespace {

std::string namesOf(const std::vector<NodeName>& nodes) {
  constexpr std::size_t kMostNames = 8;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(nodes.size(), kMostNames); ++i)
    names.push_back(nodes[i].str());
  return fmt::format(
      "{}{}", fmt::join(names, ", "),
      nodes.size() > kMostNames ? fmt::format(" and {} more", nodes.size() - kMostNames) : "");
}

}  // namespace

Result<std::vector<std::string>> SynchronizedLoad::request(const inventory::Cluster& cluster,
                                                           const std::vector<NodeName>& nodes) {
  const PowerBudget budget(cluster);
  std::map<std::string, std::map<NodeName, inventory::Node>> members;
  for (const auto& name : nodes)
    if (const auto* node = cluster.findNode(name)) members[node->rack].emplace(name, *node);
  std::vector<std::string> wrong, told;
  for (const auto& [rack, of_rack] : members) {
    int watts = 0;
    std::vector<NodeName> names;
    for (const auto& [name, node] : of_rack)
      watts += wattsOf(cluster.profileOf(node)), names.push_back(name);
    const auto limit = budget.limitOf(rack);
    if (rack.empty())
      wrong.push_back(fmt::format(
          "{}: in no rack, so their power budget is unknown; give them a rack", namesOf(names)));
    else if (!limit)
      wrong.push_back(
          fmt::format("rack {} has no declared power_watts: declare its power (racks: {{{}: "
                      "{{power_watts: …}}}})",
                      rack, rack));
    else if (watts > *limit)
      wrong.push_back(
          fmt::format("rack {} has {:.1f} kW, {} nodes together draw {:.1f} kW: name fewer of them",
                      rack, *limit / 1e3, of_rack.size(), watts / 1e3));
    else
      told.push_back(
          fmt::format("rack {}: {} nodes start at one moment, {:.1f} of {:.1f} kW in one step: {}",
                      rack, of_rack.size(), watts / 1e3, *limit / 1e3, namesOf(names)));
  }
  if (!wrong.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("no synchronized load: {}. Without --synchronized-load starts are "
                            "staggered and nodes take turns",
                            fmt::join(wrong, "; ")));
  members_ = std::move(members);
  return told;
}

void SynchronizedLoad::end() {
  members_.clear();
  steps_.clear();
}

bool SynchronizedLoad::isRequested(const inventory::Node& node) const {
  const auto rack = members_.find(node.rack);
  return rack != members_.end() && rack->second.contains(node.name);
}

std::vector<NodeName> SynchronizedLoad::missing(const std::string& rack, const Step& step) const {
  std::vector<NodeName> out;
  for (const auto& [name, node] : members_.at(rack))
    if (!step.ready.contains(name)) out.push_back(name);
  return out;
}

Result<std::optional<SynchronizedLoad::Wait>> SynchronizedLoad::ready(const inventory::Node& node,
                                                                      const std::string& gate,
                                                                      PowerBudget& power,
                                                                      Time now) {
  auto& step = steps_[{node.rack, gate}];
  if (step.ready.insert(node.name).second || !step.last_came) step.last_came = now;
  if (step.begins && power.holds(node.name)) {
    if (now >= *step.begins) return std::optional<Wait>();
    return std::optional(
        Wait{std::chrono::ceil<std::chrono::milliseconds>(*step.begins - now),
             fmt::format("the start of the synchronized load of rack {}", node.rack)});
  }
  const auto absent = missing(node.rack, step);
  const bool busy = std::any_of(absent.begin(), absent.end(),
                                [&power](const auto& name) { return power.holds(name); });
  step.given_up =
      step.given_up || (!absent.empty() && !busy && now - *step.last_came > kGatherTimeout);
  if (step.given_up)
    return fail(
        Error(
            ErrorCode::Conflict,
            fmt::format("rack {} did not start gate {} at one moment: {} were not ready within {} "
                        "minutes. Check whether they are unhealthy, or whether fewer nodes may be "
                        "out of the pool at a time. Name the others, or omit --synchronized-load",
                        node.rack, gate, absent.empty() ? "some nodes" : namesOf(absent),
                        kGatherTimeout.count()))
            .retryable(false));
  return gather(node, step, power, now);
}

std::optional<SynchronizedLoad::Wait> SynchronizedLoad::gather(const inventory::Node& node,
                                                               Step& step, PowerBudget& power,
                                                               Time now) {
  if (const auto absent = missing(node.rack, step); !absent.empty())
    return Wait{kRetryAfter, fmt::format("the other nodes of rack {}, to start at one moment: {}",
                                         node.rack, namesOf(absent))};
  std::vector<inventory::Node> all;
  for (const auto& [name, member] : members_.at(node.rack))
    if (!power.holds(name)) all.push_back(member);
  if (const auto why = power.takeAll(all, now)) return Wait{kRetryAfter, *why};
  step.begins = now + kLead;
  return Wait{kLead, fmt::format("the start of the synchronized load of rack {}", node.rack)};
}

void SynchronizedLoad::started(const inventory::Node& node, const std::string& gate) {
  steps_[{node.rack, gate}].ready.insert(node.name);
}

void SynchronizedLoad::leave(const inventory::Node& node) {
  if (const auto rack = members_.find(node.rack); rack != members_.end())
    rack->second.erase(node.name);
}

}  // namespace muster::validate
