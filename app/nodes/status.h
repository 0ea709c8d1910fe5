// SPDX-License-Identifier: Apache-2.0
// status and why: where every node is, who watches, and the reason for one node, from the store
// alone.
#pragma once

#include "app/site/session.h"
#include "lifecycle/model/unread.h"
#include "lifecycle/planner/explain.h"
#include "lifecycle/store/leader_lease.h"
#include "monitor/monitor_status.h"

#include <optional>

namespace muster::app {

struct NodeStatus {
  std::string node, state;
  std::string pool, image, certificate;  ///< observed; "-": not known
  std::size_t findings = 0;              ///< that are open
  std::vector<lifecycle::Unread> stale;  ///< what could not be read at the last look
  std::string rack, profile;             ///< declared
  friend bool operator==(const NodeStatus&, const NodeStatus&) = default;
};

/// Which nodes are asked for; what is empty chooses nothing out.
struct NodeFilter {
  std::string nodes;                ///< hostlist; for an explanation also @cluster
  std::string state;                ///< as nodeState says
  std::string rack, pool, profile;  ///< declared
  bool empty() const {
    return nodes.empty() && state.empty() && rack.empty() && pool.empty() && profile.empty();
  }
};

struct SiteStatus {
  std::vector<NodeStatus> nodes;
  monitor::MonitorStatus monitor;
  /// A rollout that runs now and for which this state folder's monitor has released the lock.
  std::optional<std::string> monitor_waits_for_rollout;
  /// Of runs that an admin let begin against the inventory, a line each, until somebody
  /// acknowledges it. Filled by SiteClient.
  std::vector<std::string> overrides;
  /// What is wrong with a server's access file, for an admin whom that server answers.
  std::vector<std::string> access_problems;
  bool several_controllers = false;
  /// Of several hosts, the one that serves the site; nothing: none has yet.
  Result<std::optional<lifecycle::Leader>> leader = std::optional<lifecycle::Leader>();
};

/// The same from a session that the caller holds. Errors: as StatusReader::read
Result<SiteStatus> readStatus(Session& session, const NodeFilter& filter = {});
/// All but the nodes.
Result<SiteStatus> readWatch(Session& session);
/// One node's row, from what the caller has read of it. Shape: facts of all that its goals ask for
/// × its open findings × its open intents → row
NodeStatus nodeStatusOf(const Controller& controller, const inventory::Node& node,
                        const lifecycle::FactSet& facts,
                        const std::vector<lifecycle::Finding>& findings,
                        const std::vector<lifecycle::Intent>& intents);

/// Reads it again and again without opening everything anew.
class StatusReader {
 public:
  /// Errors: NotFound (nothing was done here yet)
  static Result<StatusReader> open(const Options& options);
  /// Errors: InvalidInput (no hostlist), NotFound (a node, rack, pool or profile that the inventory
  /// does not have)
  Result<SiteStatus> read(const NodeFilter& filter = {});

 private:
  explicit StatusReader(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  std::unique_ptr<Session> session_;
};

/// Expected, observed, evidence and next step of one node or @cluster. `facts`: of the whole site,
/// read by the caller.
Result<lifecycle::Explanation> explainSubject(Session& session, const lifecycle::FactSet& facts,
                                              const lifecycle::Subject& subject);
/// What explainSubjects asks of its caller. Errors: InvalidInput (nothing is chosen)
Result<void> requireChoice(const NodeFilter& filter);
/// Errors: NotFound (no node is left), InvalidInput (more than `max`)
Result<void> requireExplainable(std::size_t nodes, std::size_t max);
/// Of all that the filter chooses, in the order of the inventory. Errors: InvalidInput (nothing is
/// chosen, more than `max`), NotFound (no node is left)
Result<std::vector<lifecycle::Explanation>> explainSubjects(const Options& options,
                                                            const NodeFilter& filter,
                                                            std::size_t max);

}  // namespace muster::app
