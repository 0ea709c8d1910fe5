// SPDX-License-Identifier: Apache-2.0
// A permission of its own for what the disks of storage sets hold: one for the system disk, which
// rollouts carry, does not cover it. docs/adr/0111
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "gateway/agent_gateway.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/finding.h"
#include "lifecycle/store/store.h"
#include "provision/agent_task.h"

#include <chrono>
#include <optional>
#include <string>

namespace muster::provision {

/// Lets the next writing of the node's image empty its storage sets' disks, whatever they hold.
/// Allowing twice is allowing once.
Result<void> allowDataWipe(lifecycle::Store& store, const NodeName& node,
                           const std::string& reason);

/// Who asks for the permission, and for what. Two orders with equal words are the same order: its
/// image, disk rules, declared sets and the serials of all disks.
struct DataWipeOrder {
  std::string intent;
  std::string words;       ///< empty: not known, and like no other
  bool may_begin = false;  ///< there is a permission for the system disk too
  WallTime now{};
};
std::string orderWords(const inventory::Profile& profile, const inventory::Node& node,
                       const std::string& image_digest, const wire::Hardware& hardware);
/// How long an order that failed in the middle may go on without asking again.
inline constexpr std::chrono::hours kDataWipeStands{24};

/// Uses the permission up for this order. The same intent is answered the same again: a controller
/// may be killed in between; so is, for a day, a later intent with the same order, as long as none
/// of them was done.
Result<bool> takeDataWipe(lifecycle::Store& store, const NodeName& node,
                          const DataWipeOrder& order);
/// The order is done: the next one needs a permission of its own.
Result<void> endDataWipe(lifecycle::Store& store, const NodeName& node, const std::string& intent);

/// What disks that a set's rule fits hold of others, as far as it can be told without their tables:
/// no set of muster's was ever finished there.
/// Disks whose agent is too old to say what they are (DiskUse::Unknown) are not told: the agent
/// that writes looks again, and has the last word.
std::optional<std::string> foreignData(const inventory::Profile& profile,
                                       const wire::Hardware& hardware);

/// What an operator does about a refusal of the agent; empty where no permission would help.
std::string wipeAdviceFor(const Refusal& refusal, const NodeName& node);

/// Of a refusal because a member of a set is new: what keeps its data.
std::optional<lifecycle::Finding> newMemberFinding(const Refusal& refusal, const NodeName& node,
                                                   WallTime at);

}  // namespace muster::provision
