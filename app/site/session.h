// SPDX-License-Identifier: Apache-2.0
// Session: what a use case works with when it acts: the cluster as it holds now (rollouts laid over
// the inventory), the twin when there is one, a controller, and whoever listens to what happens.
#pragma once

#include "app/controller/controller.h"
#include "app/plans/progress_listener.h"
#include "app/site/effective_cluster.h"
#include "lifecycle/planner/roster.h"

#include <memory>
#include <optional>

namespace muster::app {

struct Session {
  std::unique_ptr<lifecycle::EffectiveCluster> live;
  std::string rollouts;  ///< lifecycle::overlaysMark when the cluster was laid
  std::optional<lab::LabHandle> lab;
  ProgressListener& progress;
  std::unique_ptr<Controller> controller;
  /// What a server answers for many nodes is learned once for all of a profile.
  lifecycle::KnownDurations durations{std::chrono::seconds(60)};

  explicit Session(ProgressListener& listener) : progress(listener) {}
  const inventory::Cluster& cluster() const { return live->cluster(); }
  lifecycle::Store& store() { return controller->store(); }
  /// Of the cluster; made when it is asked for first.
  const lifecycle::Roster& roster();

  /// Starts a controller. `progress` is borrowed and outlives the session.
  static Result<std::unique_ptr<Session>> open(const Options& options,
                                               std::unique_ptr<lifecycle::EffectiveCluster> live,
                                               Role role, ProgressListener& progress);
  /// Nothing is observed and nothing started: what the store knows.
  static Result<std::unique_ptr<Session>> openStored(
      const Options& options, std::unique_ptr<lifecycle::EffectiveCluster> live);

 private:
  std::optional<lifecycle::Roster> roster_;
};

/// For one command that works with BMCs alone: the lock of the state folder, and a session from the
/// store, in the twin's network where there is one. No server is started and no node is observed.
struct LockedSession {
  StateLock lock;
  std::unique_ptr<Leadership> leadership;  ///< where several hosts may serve
  std::unique_ptr<Session> session;
  /// Errors: also Conflict (another host serves the site: which)
  static Result<LockedSession> open(const Options& options,
                                    std::unique_ptr<lifecycle::EffectiveCluster> live);
};

}  // namespace muster::app
