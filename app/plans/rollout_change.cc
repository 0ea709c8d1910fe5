// SPDX-License-Identifier: Apache-2.0
#include "app/plans/rollout_change.h"

#include "app/site/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"

namespace muster::app {

Result<std::string> changeTextOf(const lifecycle::EffectiveCluster& live, const std::string& driver,
                                 const std::vector<NodeName>& nodes) {
  std::vector<std::string> profiles;
  for (const auto& node : nodes)
    profiles.push_back(live.cluster().profileOf(*live.cluster().findNode(node)).name);
  return inventory::changeToDriver(live.cluster(), driver, profiles);
}

Result<ReadChange> changeOf(const lifecycle::RolloutParams& asked,
                            const lifecycle::EffectiveCluster& live, const std::string& nodes) {
  if (asked.change.empty() == asked.driver.empty())
    return fail(ErrorCode::InvalidInput, "say what changes, in one way: a change or a driver");
  ReadChange out{{}, asked.change, asked.change_file};
  if (!asked.driver.empty()) {
    TRY(selected, selectedNodes(live.cluster(), nodes));
    TRY(text, changeTextOf(live, asked.driver, selected));
    out.text = std::move(text);
  }
  auto loaded = inventory::loadChangeText(out.text, out.file, live.cluster());
  if (!loaded.change) {
    std::string all;
    for (const auto& one : loaded.diagnostics.all()) all += (all.empty() ? "" : "\n") + one.str();
    return fail(ErrorCode::InvalidInput, "the change does not fit the inventory:\n" + all);
  }
  out.change = std::move(*loaded.change);
  return out;
}

inventory::RolloutPolicy policyOf(inventory::RolloutPolicy policy,
                                  const lifecycle::RolloutParams& asked) {
  using inventory::OnFailure;
  using inventory::OnInconclusive;
  if (asked.canaries > 0) policy.canary = {static_cast<int>(asked.canaries), std::nullopt};
  if (asked.on_failure == "halt") policy.on_failure = OnFailure::Halt;
  if (asked.on_failure == "roll-back") policy.on_failure = OnFailure::RollBack;
  auto& on_inconclusive = policy.regression.on_inconclusive;
  if (asked.on_inconclusive == "halt") on_inconclusive = OnInconclusive::Halt;
  if (asked.on_inconclusive == "continue") on_inconclusive = OnInconclusive::Continue;
  return policy;
}

}  // namespace muster::app
