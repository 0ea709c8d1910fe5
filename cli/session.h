// SPDX-License-Identifier: Apache-2.0
// Session: what a command works with when it acts: the cluster as it holds now (rollouts laid over
// the inventory), the twin when there is one, a controller, and a view of what happens.
#pragma once

#include "app/controller.h"
#include "cli/commands/commands.h"
#include "cli/view/progress.h"
#include "lifecycle/rollout/effective_cluster.h"

#include <memory>

namespace muster::cli {

/// The declared inventory with what the store's rollouts have made of it. A store that is not there
/// yet has none.
Result<std::unique_ptr<lifecycle::EffectiveCluster>> liveCluster(const app::Options& options);

struct Session {
  std::unique_ptr<lifecycle::EffectiveCluster> live;
  std::string rollouts;  ///< lifecycle::overlaysMark when the cluster was laid
  std::optional<lab::LabHandle> lab;
  ProgressView view;
  std::unique_ptr<app::Controller> controller;

  explicit Session(ProgressView::Style style);
  const inventory::Cluster& cluster() const { return live->cluster(); }

  /// `quiet`: what is seen on the way is not shown, standard output belongs to the command's own
  /// answer.
  static Result<std::unique_ptr<Session>> open(const app::Options& options,
                                               std::unique_ptr<lifecycle::EffectiveCluster> live,
                                               app::Role role, bool quiet);
  /// Nothing is observed and nothing started: what the store knows.
  static Result<std::unique_ptr<Session>> openStored(
      const app::Options& options, std::unique_ptr<lifecycle::EffectiveCluster> live);
};

/// The nodes of a hostlist; empty text: none. Errors: InvalidInput (no hostlist), NotFound (not in
/// the inventory)
Result<std::vector<NodeName>> selectedNodes(const inventory::Cluster& cluster,
                                            const std::string& hostlist);

}  // namespace muster::cli
