// SPDX-License-Identifier: Apache-2.0
#include "app/runs/rollout_plans.h"

#include "app/plans/rollout_change.h"
#include "app/site/effective_cluster.h"
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "lifecycle/rollout/effective_cluster.h"

#include <algorithm>
#include <limits>

namespace muster::app {

using namespace lifecycle;

Error cannotRollOut() {
  return Error(ErrorCode::Internal, "this process cannot roll out; nothing was done");
}

namespace {

/// The inventory's limits hold for a rollout as for an apply, where they are declared.
int lesser(std::optional<int> a, std::optional<int> b) {
  return std::min(a.value_or(std::numeric_limits<int>::max()),
                  b.value_or(std::numeric_limits<int>::max()));
}
inventory::Ceiling stricter(const inventory::Ceiling& a, const inventory::Ceiling& b) {
  inventory::Ceiling out;
  if (a.nodes || b.nodes) out.nodes = lesser(a.nodes, b.nodes);
  if (a.percent || b.percent) out.percent = lesser(a.percent, b.percent);
  return out;
}
void holdLimits(const inventory::Cluster& cluster, inventory::RolloutPolicy& policy) {
  const auto& declared = cluster.limits->max_unavailable;
  if (declared == inventory::Unavailability{}) return;
  auto& own = policy.max_unavailable;
  own = {stricter(own.pool, declared.pool), stricter(own.rack, declared.rack),
         stricter(own.su, declared.su), stricter(own.leaf, declared.leaf)};
}

}  // namespace

Result<bool> isListed(Store& store, const std::string& id) {
  TRY(ids, RolloutRecord::list(store));
  return std::ranges::find(ids, id) != ids.end();
}

Result<RolloutDraft> draftOf(const RunWork& work, const Run& run, const FactSet& facts) {
  if (!work.live || !work.phases) return fail(cannotRollOut());
  TRY(change, changeOf(run.rollout, *work.live, run.apply.nodes));
  TRY(nodes, selectedNodes(work.cluster, run.apply.nodes));
  auto policy = policyOf(change.change.policy, run.rollout);
  holdLimits(work.cluster, policy);
  return draftWithPlan(
      *work.live, *work.phases, work.store, facts,
      {run.rollout.id, run.asked_at, run.asked_by.principal, run.asked_by.address,
       run.apply.command, change.file, change.text, policy, run.rollout.wipe_reason, nodes});
}

Result<void> layRolloutRuns(EffectiveCluster& live, RunStore& runs, Store& store) {
  TRY(open, runs.list({.open_only = true, .limit = kMaxOpenRuns}));
  std::ranges::reverse(open);  // in the order in which they were asked for
  for (const auto& run : open) {
    if (run.kind != RunKind::Rollout || run.rollout.back || !run.unreadable.empty()) continue;
    TRY(listed, isListed(store, run.rollout.id));
    if (listed || live.knows(run.rollout.id)) continue;
    if (auto made = changeOf(run.rollout, live, run.apply.nodes))
      live.add(run.rollout.id, std::move(made->change));
  }
  return {};
}

Result<std::vector<Run>> runsOfRollout(RunStore& runs, const std::string& id,
                                       const std::string& but) {
  TRY(open, runs.list({.open_only = true, .limit = kMaxOpenRuns}));
  std::erase_if(open, [&](const Run& run) {
    return run.kind != RunKind::Rollout || run.rollout.id != id || run.id == but;
  });
  return std::move(open);
}

}  // namespace muster::app
