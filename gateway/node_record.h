// SPDX-License-Identifier: Apache-2.0
// What the controller knows of one node's agent: its last poll, the tasks it lists, those that wait
// to be handed over. Rebuilt from the agent's own reports after a restart of the controller;
// everything in it is bounded.
#pragma once

#include "base/async/change_notifier.h"
#include "gateway/agent_gateway.h"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::gateway {

inline constexpr std::size_t kMaxWaitingTasks = 32;  ///< submitted, not yet taken by the agent
inline constexpr std::size_t kKeepFinished =
    8;  ///< results that the agent is asked to keep; told once there are twice as many
inline constexpr std::size_t kMaxRetiredBoots = 8;
inline constexpr int kPollsToRevive =
    3;  ///< of a boot that counts as ended; of one that has ended one or two may be under way

struct NodeRecord {
  std::optional<AgentState> state;
  std::chrono::steady_clock::time_point last_poll{};
  std::uint64_t last_sequence = 0;
  bool wants_answer =
      false;  ///< the last poll reported a task's end, and the agent waits until that has arrived
  std::string health_rules;  ///< digest of those that the agent has; empty: it asks for none
  std::uint64_t polls = 0;   ///< a newer poll ends the wait of an older one
  struct RetiredBoot {
    std::string id;
    std::uint64_t last_sequence = 0;
    int polls = 0;  ///< new polls since the present boot's last one
  };
  std::deque<RetiredBoot> retired_boots;
  std::vector<wire::AgentTask>
      waiting;  ///< handed over with every answer until the agent lists them
  /// Unfinished tasks of which nobody wants the outcome; told with every answer until the agent
  /// lists them no more.
  std::vector<std::string> abandoned;
  std::vector<wire::AgentTaskReport> reports;  ///< as the agent listed them, in its order
  std::map<std::string, wire::AgentTaskReport>
      lost;                       ///< started by an agent that no longer knows them
  async::ChangeNotifier work;     ///< something to hand over
  async::ChangeNotifier changed;  ///< state or reports

  const wire::AgentTaskReport* report(const std::string& id) const;
  bool isWaiting(const std::string& id) const;
  bool busy() const;

  /// Is what a poll leaves out (unchanged_since) known here?
  bool hasStateOf(const wire::PollRequest& request) const;
  /// Takes in a poll; one that leaves things out must be known. False when it is older than what is
  /// known (late, or of a boot that is over).
  Result<bool> apply(const NodeName& node, wire::PollRequest request, const std::string& address,
                     const Clock& clock);
  /// Takes the task to be handed over; nothing happens when it is known. Errors: Conflict (too
  /// many)
  Result<void> add(wire::AgentTask task);
  /// A task that waits is not handed over, one that runs is to be ended (AgentGateway::abandon).
  void abandon(const std::string& id);
  /// Finished tasks beyond those worth keeping, oldest first.
  std::vector<std::string> takeObsolete();

 private:
  void keepAbandoned();
  bool isRetired(const wire::PollRequest& request);
  void markSeen(const wire::PollRequest& request, const std::string& address, const Clock& clock);
  void retireBoot(const wire::PollRequest& request);
  void markLost(const std::string& id, std::string why);
  Result<void> restoreResults(std::vector<wire::AgentTaskReport>& reports) const;
};

}  // namespace muster::gateway
