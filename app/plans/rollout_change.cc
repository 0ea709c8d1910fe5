// SPDX-License-Identifier: Apache-2.0
#include "app/plans/rollout_change.h"

#include "app/site/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"

#include <fmt/ranges.h>

namespace muster::app {

namespace {

/// The change that brings the profiles of these nodes to the driver.
Result<std::string> changeTextOf(const lifecycle::EffectiveCluster& live, const std::string& driver,
                                 const std::vector<NodeName>& nodes) {
  std::vector<std::string> profiles;
  for (const auto& node : nodes)
    profiles.push_back(live.cluster().profileOf(*live.cluster().findNode(node)).name);
  return inventory::changeToDriver(live.cluster(), driver, profiles);
}

}  // namespace

Result<ReadChange> changeOf(const lifecycle::RolloutParams& asked,
                            const lifecycle::EffectiveCluster& live, const std::string& nodes) {
  if (asked.change.empty() == asked.driver.empty())
    return fail(ErrorCode::InvalidInput,
                "say what changes, in one way: --change FILE or --driver NAME");
  ReadChange out{{}, asked.change, asked.change_file, {}};
  if (!asked.driver.empty()) {
    TRY(selected, selectedNodes(live.cluster(), nodes));
    TRY(text, changeTextOf(live, asked.driver, selected));
    out.text = std::move(text);
  }
  auto loaded = inventory::loadChangeText(out.text, out.file, live.cluster());
  for (const auto& one : loaded.diagnostics.all()) out.notes.push_back(one.str());
  if (!loaded.change)
    return fail(ErrorCode::InvalidInput,
                fmt::format("the change does not fit the inventory; nothing was done:\n{}",
                            fmt::join(out.notes, "\n")));
  out.change = std::move(*loaded.change);
  return out;
}

inventory::RolloutPolicy policyOf(inventory::RolloutPolicy policy,
                                  const lifecycle::RolloutParams& asked) {
  if (asked.canaries > 0) policy.canary = {static_cast<int>(asked.canaries), std::nullopt};
  policy.on_failure = asked.on_failure.value_or(policy.on_failure);
  auto& on_inconclusive = policy.regression.on_inconclusive;
  on_inconclusive = asked.on_inconclusive.value_or(on_inconclusive);
  return policy;
}

}  // namespace muster::app
