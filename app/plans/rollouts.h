// SPDX-License-Identifier: Apache-2.0
// Rollouts as use cases: start, resume, roll back, pause, abort, and how far one is. What is
// decided on the way is in lifecycle/rollout/.
#pragma once

#include "app/plans/progress_listener.h"
#include "app/plans/rollout_outcome.h"
#include "app/site/options.h"
#include "inventory/model/node.h"
#include "lifecycle/rollout/record.h"
#include "lifecycle/runs/run.h"

#include <filesystem>
#include <memory>
#include <optional>

namespace muster::app {

struct Session;

/// A rollout that this process holds, with the controller that carries it out.
class RolloutRun {
 public:
  RolloutRun(RolloutRun&&) noexcept;
  ~RolloutRun();
  /// Freezes the plan of `asked` for the nodes of a hostlist. Nothing is written until begin().
  /// `dry_run`: begin() must not be called.
  static Result<RolloutRun> draft(const Options& options, const lifecycle::RolloutParams& asked,
                                  const std::string& hostlist, bool dry_run,
                                  ProgressListener& progress);
  /// `accept_reason`: why it goes on although the wave's gate failed; empty: only when it has not.
  static Result<RolloutRun> resume(const Options& options, const std::string& accept_reason,
                                   ProgressListener& progress);
  /// `id`: empty: the newest.
  static Result<RolloutRun> rollBack(const Options& options, const std::string& id,
                                     const std::string& wipe_reason, ProgressListener& progress);

  const lifecycle::RolloutRecord& book() const { return book_; }
  Result<void> begin() { return book_.begin(); }
  /// Who watches the nodes that the rollout does not touch, in one line for people.
  Result<std::string> whoWatches() const;
  /// Goes on until it ends or stops by itself; book() says which.
  Result<void> carryOn();

 private:
  RolloutRun(const Options& options, std::unique_ptr<Session> session,
             lifecycle::RolloutRecord book, lifecycle::RolloutDirection way);

  Options options_;
  std::unique_ptr<Session> session_;
  lifecycle::RolloutRecord book_;
  lifecycle::RolloutDirection way_;
};

/// What the store has recorded of one.
struct StoredRollout {
  std::unique_ptr<lifecycle::Store> store;
  lifecycle::RolloutRecord book;
  lifecycle::GivenOrder order;
  std::vector<std::string> others;  ///< ids of other rollouts over the inventory, oldest first
};
/// `id`: empty: the one that is open, else the newest. Errors: NotFound
Result<StoredRollout> storedRollout(const Options& options, const std::string& id);

struct OrderedRollout {
  std::string id;
  std::string done;  ///< what was done, or what its runner will do, for people
};
/// Pause or abort.
Result<OrderedRollout> orderRollout(const Options& options, lifecycle::Order order);

}  // namespace muster::app
