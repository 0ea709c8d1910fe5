// SPDX-License-Identifier: Apache-2.0
// Checks on nodes on which nothing runs, beside the monitor: a node is held in its scheduler, its
// agent runs the checks of a quick gate one after the other, and the hold is given back at once
// where a job wants the node. A check that gave way has found nothing; one that fails twice voids
// the node's certificate, and the monitor drains it as any other. docs/monitor.md, docs/adr/0374
#pragma once

#include "base/async/task.h"
#include "gateway/agent_gateway.h"
#include "inventory/model/fwd.h"
#include "inventory/model/pools.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/store/store.h"
#include "pool/idle_holds.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::app {

/// Borrowed.
struct ActiveCheckServices {
  const inventory::Cluster& cluster;
  gateway::AgentGateway& agents;
  lifecycle::Store& store;
  lifecycle::Engine& engine;
  Clock& clock;
  pool::IdleHolds& holds;
  /// The node's certificate counts no more: node, by whom, why.
  std::function<Result<void>(const NodeName&, const std::string&, const std::string&)> revoke;
};

class Controller;
/// Of a controller, which outlives them.
ActiveCheckServices activeCheckServices(Controller& controller, const inventory::Cluster& cluster);

/// What the store keeps of a node's last check, by activeCheckKey.
struct ActiveCheckRecord {
  WallTime at{};
  std::string gate;
  std::vector<std::string> failed;  ///< checks; empty: all have passed
};
std::string activeCheckKey(const NodeName& node);
std::string toJson(const ActiveCheckRecord& record);
/// Errors: Corrupt
Result<ActiveCheckRecord> parseActiveCheck(std::string_view text);

/// Of the idle nodes those that are to be checked now: longest not checked first, as many as the
/// budget lets. Pure.
std::vector<NodeName> dueForCheck(const inventory::ActiveChecks& rule,
                                  const std::vector<NodeName>& idle,
                                  const std::map<NodeName, WallTime>& last, WallTime now);

/// What came of one round.
struct ActiveCheckRound {
  std::size_t begun = 0, passed = 0, failed = 0;
  std::size_t gave_way = 0;  ///< to a job, or somebody else has the node
};
/// One look at one pool with active_checks, and the checks that follow. Errors: those of the
/// scheduler and of the store
Async<ActiveCheckRound> checkIdleNodes(ActiveCheckServices services, std::string pool);
/// For ever, in all pools that ask for it; what an earlier process has held is given back first.
/// What the scheduler refuses is a finding of the cluster, facet `active-checks`, until it does
/// not.
Task<void> keepActiveChecks(ActiveCheckServices services);

}  // namespace muster::app
