// SPDX-License-Identifier: Apache-2.0
// Nodes that take jobs while nobody hears their agents: what is not watched is not known to be
// well.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "lifecycle/store/store.h"

#include <map>
#include <optional>
#include <set>

namespace muster::monitor {

inline constexpr std::chrono::minutes kAgentSilentAfter{
    5};  ///< since its last report; agents call every few seconds, and may be restarted
/// An agent that this process has never heard has so long to dial in, whatever the store knows of
/// its last report.
inline constexpr std::chrono::minutes kAgentStartupGrace{2};

class AgentLiveness {
 public:
  AgentLiveness(const inventory::Cluster& cluster, lifecycle::Store& store, Clock& clock)
      : cluster_(cluster), store_(store), clock_(clock) {}

  void heard(const NodeName& node) {
    since_.erase(node);
    heard_.insert(node);
  }
  /// Its agent is not there now. Time counts from its last report, by the facts of the store where
  /// this process has not heard it: another session of the monitor does not begin it anew. Answers
  /// the fact health.system where that has been so for too long and the node takes jobs, by the
  /// facts as last stored; what the fact has told before stays in it. Nothing where the node is
  /// known to be unhealthy. Errors: of the store
  Result<std::optional<lifecycle::Fact>> factWhenSilent(const NodeName& node);

 private:
  struct Since {
    std::chrono::steady_clock::time_point steady;
    WallTime wall;
  };
  const inventory::Cluster& cluster_;
  lifecycle::Store& store_;
  Clock& clock_;
  std::map<NodeName, Since> since_;  ///< when its absence was noticed
  std::set<NodeName> heard_;         ///< by this process
};

/// What a fact health.system says of an agent that has fallen silent, where it is only watched;
/// empty: nothing.
std::string silenceText(const lifecycle::Fact& fact);

}  // namespace muster::monitor
