// SPDX-License-Identifier: Apache-2.0
// AgentGateway: all that the controller's phases see of agents.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/ids.h"
#include "wire/health.h"
#include "wire/messages.h"

#include <optional>
#include <string>

namespace muster::gateway {

struct AgentState {
  NodeName node;
  wire::Mode mode = wire::Mode::Ram;
  std::string boot_id;
  std::string image_digest;
  std::map<std::string, std::string> probes;
  wire::Hardware hardware;
  bool fresh =
      false;  ///< hardware and probes are from after the last task that may have changed them
  std::optional<wire::HealthReport>
      health;  ///< nullopt: this boot's agent has not reported any yet, or is too old to
  WallTime last_seen{};
  std::string address;
};

class AgentGateway {
 public:
  virtual ~AgentGateway() = default;
  /// The agent's state by its last poll; nullopt when there was none within kAgentTimeout.
  virtual std::optional<AgentState> state(const NodeName& node) const = 0;
  /// Waits until the agent of this node is there in this mode (any, when nullopt).
  /// `not_boot_id`: a boot that does not count (the one before the restart). Errors: Timeout
  virtual Async<AgentState> waitFor(NodeName node, std::optional<wire::Mode> mode,
                                    std::string not_boot_id, std::chrono::seconds limit) = 0;
  /// Hands the task to the node. The same id again is the same task: nothing is started twice.
  /// Errors: Unavailable (no agent)
  virtual Result<void> submit(const NodeName& node, wire::AgentTask task) = 0;
  /// What is known of the task: also of tasks that an earlier controller submitted, once the agent
  /// has polled again.
  virtual std::optional<wire::AgentTaskReport> report(const NodeName& node,
                                                      const std::string& task_id) const = 0;
  /// The same once the task has ended, or as it is known when the limit passes before.
  virtual Task<std::optional<wire::AgentTaskReport>> reportWithin(
      NodeName node, std::string task_id, std::chrono::milliseconds limit) = 0;
  /// Nobody wants the task's outcome any more: where it changes nothing of its node, the agent ends
  /// it and whatever it has started at once, and its report says that it is lost. One that changes
  /// the node goes on. Nothing happens when it has ended, or is not known.
  virtual void abandon(const NodeName& node, const std::string& task_id) = 0;
  /// submit, then wait for Done. Errors: the task's own failure, Timeout, Unavailable
  virtual Async<wire::AgentTaskReport> runTask(NodeName node, wire::AgentTask task) = 0;
};

}  // namespace muster::gateway
