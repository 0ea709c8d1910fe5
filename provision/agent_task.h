// SPDX-License-Identifier: Apache-2.0
// One piece of agent work behind one intent: which task it is, whether it may wipe, how far it got.
// Lives in the intent's operation, so that a controller that takes the intent up again goes on with
// the same task.
#pragma once

#include "gateway/agent_gateway.h"
#include "lifecycle/model/phase.h"

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::provision {

inline constexpr int kMaxTaskAttempts = 3;

/// "1:guarded:open", "2:wipe:done", "1:wipe+data:open", "1:data:open".
struct TaskNote {
  int attempt = 1;
  bool wipe_allowed =
      false;  ///< as it was before the first attempt; later ones have no more rights than that
  bool done = false;          ///< the agent said so
  bool data_allowed = false;  ///< the disks of storage sets (data_wipe.h); without wipe_allowed
                              ///< where an order goes on that has emptied the system disk
  std::string str() const;
  /// nullopt for an empty operation: nothing was submitted yet. Errors: Corrupt
  static Result<std::optional<TaskNote>> parse(const std::string& operation);
  /// The agent never runs one id twice, and a failed id stays failed: each attempt has its own.
  std::string taskId(const std::string& intent_id) const;
};

/// The agent's Denied: needs a person.
struct Refusal {
  std::string why;  ///< for people
  std::vector<wire::TaskReason> reasons;

  bool has(wire::TaskReason reason) const;
};

/// Waits (Again), or the task's result as JSON, or a refusal.
using TaskStep = std::variant<lifecycle::Again, Refusal, std::string>;

/// Submits the task when the agent does not know it, follows it, starts a new attempt when a retry
/// can help. `params` makes the parameters; it is told whether wiping is allowed. `data_allowed` is
/// written down before the first attempt. Errors: the task's failure, with the agent's reasons
Async<TaskStep> stepTask(gateway::AgentGateway& agents, NodeName node, wire::TaskKind kind,
                         std::chrono::seconds deadline, lifecycle::ActContext& context,
                         std::function<std::string(bool wipe_allowed)> params,
                         bool data_allowed = false);

/// The task's id while it says that it restarts the machine.
std::optional<std::string> taskThatRestarts(const gateway::AgentGateway& agents,
                                            const NodeName& node,
                                            const lifecycle::ActContext& context);

}  // namespace muster::provision
