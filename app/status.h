// SPDX-License-Identifier: Apache-2.0
// status and why: where every node is, who watches, and the reason for one node, from the store
// alone.
#pragma once

#include "app/session.h"
#include "lifecycle/planner/explain.h"
#include "lifecycle/store/leader_lease.h"
#include "monitor/monitor_status.h"

#include <optional>

namespace muster::app {

struct NodeStatus {
  std::string node, state;
  std::string pool, image, certificate;  ///< observed; "-": not known
  std::size_t findings = 0;              ///< that are open
};

struct SiteStatus {
  std::vector<NodeStatus> nodes;
  monitor::MonitorStatus monitor;
  /// A rollout that runs now and for which this state folder's monitor has released the lock.
  std::optional<std::string> monitor_waits_for_rollout;
  bool several_controllers = false;
  /// Of several hosts, the one that serves the site; nothing: none has yet.
  Result<std::optional<lifecycle::Leader>> leader = std::optional<lifecycle::Leader>();
};

/// Reads it again and again without opening everything anew.
class StatusReader {
 public:
  /// Errors: NotFound (nothing was done here yet)
  static Result<StatusReader> open(const Options& options);
  Result<SiteStatus> read();

 private:
  explicit StatusReader(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  std::unique_ptr<Session> session_;
};

/// Expected, observed, evidence and next step of one node or @cluster. Errors: NotFound
Result<lifecycle::Explanation> explainSubject(const Options& options, const std::string& subject);

}  // namespace muster::app
