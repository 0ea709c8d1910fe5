// SPDX-License-Identifier: Apache-2.0
// An isolation as work of whoever has the agents: a command of its own, or a run of who serves the
// site. Internal to app/.
#pragma once

#include "app/plans/current_impact.h"
#include "app/validation/isolation.h"
#include "gateway/agent_gateway.h"
#include "lifecycle/store/measurements.h"
#include "validate/isolate/routes.h"

#include <functional>

namespace muster::app {

/// Borrowed.
struct IsolationServices {
  const inventory::Cluster& cluster;
  gateway::AgentGateway& agents;
  lifecycle::Store& store;
  lifecycle::Measurements& measurements;
  Clock& clock;
  PoolObserver observe_pool;
  /// The tables of the fabric's switches; empty: not known. Errors: why not
  std::function<Async<validate::isolate::SiteRoutes>(const validate::isolate::Site&)> routes;
  std::function<void(const std::string&)> notice;
  std::filesystem::path folder;  ///< for what has been done so far, and for the document
};

struct IsolationWish {
  IsolationRequest request;
  std::vector<NodeName> nodes;  ///< empty: all of fabrics
  bool may_leave_out =
      false;               ///< nodes that must not be disturbed are left out; else none is tested
  std::string log;         ///< name of the folder of what has been done so far
  bool is_shared = false;  ///< another host may go on with it: its log is in the store as well
  std::string run_id = "isolate";  ///< begins the ids of its tasks; empty: a new one
};

/// Whom it is about where none is named: the nodes of all fabrics, as the inventory has them.
std::vector<NodeName> nodesOfFabrics(const inventory::Cluster& cluster);
/// What an isolation does to a node, as an action of a plan, so that who must agree can be asked.
lifecycle::Action testOf(const NodeName& node);
/// Why a test must not disturb the node now, by its place in its pool; empty: it may.
std::string whyNotDisturb(const inventory::Cluster& cluster, const NodeName& node,
                          const std::optional<lifecycle::Fact>& pool);
/// Goes on with what its log holds, or begins. The log stays until `forgetIsolation`. Errors:
/// Conflict (a named node must not be disturbed now)
Async<validate::isolate::IsolationRun> isolateNodes(IsolationServices services, IsolationWish wish);
/// Culprits become findings, rates measurements, every test a document, however often this is done.
/// Answers the document.
Result<std::filesystem::path> keepIsolation(const IsolationServices& services,
                                            const validate::isolate::IsolationRun& done);
Result<void> forgetIsolation(const std::filesystem::path& folder, const std::string& log);
/// Also of the store.
Result<void> forgetIsolation(const IsolationServices& services, const std::string& log);

}  // namespace muster::app
