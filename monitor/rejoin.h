// SPDX-License-Identifier: Apache-2.0
// Rejoin: a node that keep itself has drained, and whose reason has gone, passes its gates again
// and goes back to its pool – where the inventory says so (monitor.rejoin_minutes), and only if its
// plan holds nothing but gates, certificate and pool.
#pragma once

#include "lifecycle/executor/engine.h"
#include "monitor/eviction.h"
#include "monitor/fleet_poll.h"
#include "monitor/retry_state.h"

#include <map>
#include <set>
#include <string>

namespace muster::monitor {

inline constexpr std::size_t kRejoinsADay = 2;   ///< of one node; who comes and goes is a person's
inline constexpr std::size_t kFailuresADay = 3;  ///< of its gates, on the way back
inline constexpr std::size_t kRejoinsAtOnce = 16;  ///< begun in one look
inline constexpr std::chrono::hours kRefusedFor{
    1};  ///< a node that may not rejoin now is looked at again after so long

class Rejoin {
 public:
  Rejoin(const inventory::Cluster& cluster, lifecycle::Phases phases, lifecycle::Store& store,
         Clock& clock, lifecycle::Engine& engine, RetryState& retry_state)
      : cluster_(cluster),
        phases_(std::move(phases)),
        store_(store),
        clock_(clock),
        engine_(engine),
        retry_state_(retry_state) {}

  /// Takes in a look: who is well, and since when. Only time in which the monitor looks counts:
  /// another command's turn does not, nor what was before a restart.
  void notice(const FleetSnapshot& snapshot);
  /// What brings those back that have been well for long enough, by action id. `busy`: something is
  /// under way there. Errors: those of the store
  Async<std::map<std::string, lifecycle::Action>> due(std::set<lifecycle::Subject> busy);
  /// Whether it may come back, as of the last look.
  bool isWell(const NodeName& node) const {
    return looked_ && retry_state_.well_since.contains(node);
  }
  /// Whether a rejoin that is under way still is right: the node is not unhealthy.
  bool isRight(const NodeName& node) const { return !unhealthy_.contains(node); }

 private:
  Async<std::map<std::string, lifecycle::Action>> plan(NodeName node);
  Result<std::string> tooOften(const NodeName& node) const;
  void refuse(const NodeName& node, const std::string& why);

  const inventory::Cluster& cluster_;
  const lifecycle::Phases phases_;
  lifecycle::Store& store_;
  Clock& clock_;
  lifecycle::Engine& engine_;
  RetryState& retry_state_;
  bool looked_ = false;
  std::set<NodeName> unhealthy_;
};

/// Whether the monitor drained the node for something that is over. By the facts of a look; pure.
bool reasonIsOver(const inventory::Cluster& cluster, const inventory::Node& node,
                  const lifecycle::FactSet& facts);

}  // namespace muster::monitor
