// A permission of its own for what the disks of storage sets hold: one for the system disk, which rollouts carry, does not cover it.
// docs/adr/0111
#pragma once

#include "agent/protocol/gateway.h"
#include "inventory/cluster.h"
#include "lifecycle/store.h"

#include <optional>
#include <string>

namespace muster::provision {

/// Lets the next writing of the node's image empty its storage sets' disks, whatever they hold. Allowing twice is allowing once.
Result<void> allowDataWipe(lifecycle::Store& store, const NodeName& node, const std::string& reason);

/// Uses the permission up for this intent. The same intent is answered the same again: a controller may be killed in between.
Result<bool> takeDataWipe(lifecycle::Store& store, const NodeName& node, const std::string& intent);

/// What disks that a set's rule fits hold of others, as far as it can be told without their tables: no set of muster's was ever finished there.
std::optional<std::string> foreignData(const inventory::Profile& profile, const agent::Hardware& hardware);

/// What an operator does about a refusal of the agent (wipe_guard.h); empty where no permission would help.
std::string wipeAdviceFor(const std::string& refusal, const NodeName& node);

}  // namespace muster::provision
