// SPDX-License-Identifier: Apache-2.0
// Why an action is done: because the inventory wants it, or because the monitor does. What is
// decided about an action later rests on this, never on the words of its reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::lifecycle {

enum class ActionCause {
  Declared,   ///< the inventory, or a person's request
  Admission,  ///< the node may not take jobs
  Repair,     ///< of a node that reports symptoms
  Recovery,   ///< of an action that has failed, or that action once more
  Rejoin,     ///< the reason of its drain is over
};
std::string_view toString(ActionCause cause);
std::optional<ActionCause> parseActionCause(std::string_view word);

/// The reason of a drain as a scheduler keeps it: a text of one line is all that survives there.
///   "admission (certificate): it has no certificate"      (older musters: without the facet)
struct PoolReason {
  ActionCause cause = ActionCause::Declared;
  std::string about;  ///< the facet that caused it; empty: none in particular
  std::string text;
};
std::string print(const PoolReason& reason);
PoolReason parsePoolReason(std::string_view text);

}  // namespace muster::lifecycle
