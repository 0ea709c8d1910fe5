// SPDX-License-Identifier: Apache-2.0
// Where a node stands in a rollout, in words for `muster why`; and who else may not be disturbed by
// one.
#pragma once

#include "lifecycle/rollout/record.h"

#include <string>
#include <vector>

namespace muster::lifecycle {

/// Why somebody else than muster keeps the node out of its pool; empty: nobody does. By the fact
/// `pool`.
std::string heldByPerson(const FactSet& facts, const NodeName& node);

/// The rollout that the node is in, and what it waits for there: one line. Empty: no rollout that
/// is open names it.
std::string rolloutStatusOf(const RolloutRecord& record, const NodeName& node, WallTime now);
/// Of the newest rollout in the store. Errors: those of the store
Result<std::string> rolloutStatusOf(Store& store, const NodeName& node, WallTime now);

}  // namespace muster::lifecycle
