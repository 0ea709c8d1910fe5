// SPDX-License-Identifier: Apache-2.0
// Freezing: what a rollout will do, decided once from what is known now.
#pragma once

#include "inventory/model/node.h"
#include "inventory/model/rollout_policy.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "lifecycle/rollout/record.h"

#include <set>

namespace muster::lifecycle {

struct RolloutRequest {
  std::string id;  ///< under which its change was added to the EffectiveCluster
  WallTime at{};
  std::string user, host, command;
  std::string change_file, change_text;
  inventory::RolloutPolicy policy;
  std::string wipe_reason;
  std::vector<NodeName> nodes;
};

/// A new id, short enough to be typed.
std::string newRolloutId();

/// Makes the plan as if all these nodes had the change; nothing is written and nothing is done to
/// any node: `begin` of the draft starts it. Nodes whose declaration the change does not alter are
/// left out, nodes whose plan is empty stay untouched, nodes that cannot go (something blocks an
/// action, a person keeps them out of their pool) are skipped, each with its reason. Errors:
/// InvalidInput (it concerns no node; all are blocked), Conflict (another rollout is open; the
/// cluster itself has work
///         left), those of makePlan and of the store
struct RolloutDraft {
  RolloutRecord record;
  Plan plan;  ///< of all nodes at once, as if they had the change
};
Result<RolloutDraft> draftWithPlan(EffectiveCluster& effective, const Phases& phases, Store& store,
                                   const FactSet& facts, RolloutRequest request);
Result<RolloutRecord> draftRollout(EffectiveCluster& effective, const Phases& phases, Store& store,
                                   const FactSet& facts, RolloutRequest request);

/// The same, written down.
Result<RolloutRecord> freezeRollout(EffectiveCluster& effective, const Phases& phases, Store& store,
                                    const FactSet& facts, RolloutRequest request);

/// What undoing it would do to all its changed nodes at once; nothing is written, and each has its
/// change again afterwards. `may_wipe`: an earlier image may be written over this one.
Result<Plan> planRollback(EffectiveCluster& effective, const Phases& phases, Store& store,
                          const FactSet& facts, const RolloutRecord& record, bool may_wipe);

/// Numbers of the node that were seen since `since`: in its facts' evidence, and how long its
/// system took to start. Errors: those of the store
Result<Measures> nodeMeasures(Store& store, const Subject& node, const std::vector<Fact>& facts,
                              WallTime since);

/// What of this plan the frozen one does not cover, one line each; empty: it lies within.
/// `begun`: the node has been worked on, so that what depends on facts of the way may want other
/// values, and what nobody could foresee may be needed, as long as it disturbs the node no more
/// than the frozen plan does somewhere.
std::vector<std::string> beyondFrozen(const Plan& plan, const FrozenNode* frozen, bool begun);

}  // namespace muster::lifecycle
