// SPDX-License-Identifier: Apache-2.0
// RolloutWork: a rollout whose run is under way. Its waves, gates, soaks and limits are
// lifecycle/rollout's; the run brings who asked and agreed, when nodes may be taken out, and that
// it goes on whatever dies. Internal to app/.
#pragma once

#include "app/runs/run_rounds.h"
#include "lifecycle/rollout/freeze.h"

#include <chrono>
#include <map>
#include <memory>

namespace muster::app {

/// Of a rollout that people have let go on: its record says that it is running. Idempotent.
Result<void> prepareRolloutToGoOn(const RunWork& work, const lifecycle::Run& run);

/// One rollout that is under way in this process.
class RolloutWork final : public OrderHandler {
 public:
  RolloutWork(RunWork& work, RunRows& rows) : work_(work), rows_(rows) {}
  Async<void> carryOut(lifecycle::Run run);
  /// What a person has ordered: nodes under way are finished, no others are begun. Answers whether
  /// a rollout is under way that obeys.
  bool obeys(lifecycle::RunOrder order, const std::string& by) override;
  void saveProgress(const std::string& id) override;

 private:
  Async<void> goOn(lifecycle::Run run);
  Async<bool> begin(lifecycle::Run run);
  Async<void> drive(lifecycle::Run run, lifecycle::RolloutDirection way);
  Result<void> settle(const std::string& id);
  std::string hold(const NodeName& node);
  std::string windowOf(const NodeName& node);

  RunWork& work_;
  RunRows& rows_;
  lifecycle::Run run_;
  lifecycle::RunOrder order_ = lifecycle::RunOrder::None;
  std::string ordered_by_;
  std::unique_ptr<lifecycle::RolloutRecord> record_;
  lifecycle::RunProgress saved_;
  std::optional<WallTime> opens_;  ///< why it is held: its window opens then
  std::map<std::string, std::pair<WallTime, std::string>>
      windows_;  ///< by pool: looked at, why not
};

}  // namespace muster::app
