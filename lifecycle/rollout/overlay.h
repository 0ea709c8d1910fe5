// SPDX-License-Identifier: Apache-2.0
// What rollouts have made of the inventory: laid over it wherever plans are made, until the
// inventory says the same itself.
#pragma once

#include "lifecycle/rollout/effective_cluster.h"
#include "lifecycle/rollout/record.h"

namespace muster::lifecycle {

/// Adds every rollout of the store, and changes the nodes that have the change. Where the
/// inventory says something else of a profile than it did when the rollout began, it is the later
/// word, and the change is void for that profile. `without`: this one stays out. Errors: Conflict
/// (the inventory has changed so that a rollout's change does not fit it any more), those of the
/// store
Result<void> applyOverlays(EffectiveCluster& effective, Store& store,
                           const std::string& without = {});

/// Changes whenever a node is changed or reverted: a plan that was made with another one may undo
/// what a rollout has done since.
Result<std::string> overlaysMark(Store& store);

/// Takes rollouts off the list that are over and make no difference: rolled back, or the inventory
/// says the same by now.
Result<void> dropMerged(EffectiveCluster& effective, Store& store);

/// What pause and abort do. `alone`: nobody else works on this store now, so nobody would obey an
/// order. Answers what was done, as a sentence. Errors: Conflict (there is nothing to pause or
/// abort)
Result<std::string> orderRollout(RolloutRecord& record, Order order, const std::string& by,
                                 bool alone);

/// Whether undoing this rollout gives its nodes back what they were before it, and leaves what came
/// later as it is. docs/adr/0119 Errors: Conflict (it is undone, or the inventory's own; another
/// one is open; a later one has set the same of the same nodes, or needs what this one brought:
/// which, and what to do first), those of the store
Result<void> mayRollBack(const inventory::Cluster& declared, Store& store,
                         const RolloutRecord& record);

/// Before a halted rollout goes on: its failed nodes of the wave are tried again; or, `accepted_by`
/// not empty, the gate of the wave counts as passed. Answers the way it goes on. Errors: Conflict
/// (it is over)
Result<RolloutDirection> prepareResume(RolloutRecord& record, const std::string& accepted_by);

}  // namespace muster::lifecycle
