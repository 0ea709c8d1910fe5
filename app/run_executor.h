// SPDX-License-Identifier: Apache-2.0
// RunExecutor: carries runs out, beside the monitor, in the process that serves the site. One after
// the other, oldest first; what waits for people stops nobody. It lives on rows: dropped anywhere,
// the next one goes on. docs/runs.md
#pragma once

#include "app/current_impact.h"
#include "app/run_rows.h"
#include "lifecycle/executor/engine.h"

#include <memory>
#include <set>
#include <string>

namespace muster::app {

/// What one process remembers from one executor to the next: while it lives, a run that was dropped
/// for a moment (a command had the state folder) is not one whose process has died.
struct RunMemory {
  std::set<std::string> begun;
  std::string under_way;                 ///< id of the run that is worked on now; empty: none
  bool begin_none = false;               ///< somebody waits for the end of what is under way
  std::set<std::string> read_again_for;  ///< runs for which the inventory was read again
  std::function<void(const lifecycle::Event&)>
      hear;  ///< to be told every event; empty: nobody asks
};

/// What an executor works with; borrowed.
struct RunWork {
  const inventory::Cluster& cluster;
  lifecycle::RunStore& runs;
  lifecycle::Store& store;
  lifecycle::Engine& engine;
  Clock& clock;
  std::string holder;  ///< of the store's session
  std::function<Async<lifecycle::FactSet>(lifecycle::Policy)> observe;
  std::function<Result<lifecycle::Plan>(const lifecycle::FactSet&, const lifecycle::Policy&)> plan;
  PoolObserver observe_pool;
  std::function<void(const std::string&)> notice = {};  ///< for the operator of this process
  std::function<void()> read_inventory = {};            ///< asks for it: another executor follows
};

class RunExecutor {
 public:
  RunExecutor(RunWork work, std::shared_ptr<RunMemory> memory);
  ~RunExecutor();
  RunExecutor(const RunExecutor&) = delete;

  /// Never ends by itself; ends by cancellation, as by a crash.
  Task<void> run();
  /// Takes one run as far as it goes now. Answers whether there was one. Errors: of the store, and
  /// others that can be retried; the run is as it was
  Async<bool> step();

 private:
  Result<std::optional<lifecycle::Run>> next();
  /// What an earlier process has left. Answers the run when it is to be worked on.
  Result<std::optional<lifecycle::Run>> adopt(lifecycle::Run run);
  Task<lifecycle::RunOrder> awaitOrder(std::string id);
  Result<void> obey(const std::string& id);

  Async<void> carryOut(lifecycle::Run run);
  Async<void> makePlan(lifecycle::Run run);
  Async<void> begin(lifecycle::Run run);
  Async<void> converge(lifecycle::Run run, std::optional<lifecycle::Plan> first);
  struct Round {
    lifecycle::Plan plan;
    PlanImpact impact;
    bool nothing_left = false;
  };
  Async<Round> look(lifecycle::Run run);
  Async<lifecycle::ApplyReport> apply(lifecycle::Run run, lifecycle::Plan plan);

  void saveProgress(const std::string& id);

  RunWork work_;
  RunRows rows_;
  std::shared_ptr<RunMemory> memory_;
  std::optional<lifecycle::Plan> made_;  ///< just now, for the run `made_for_`
  std::string made_for_;
  std::set<std::string> action_ids_;  ///< of the plan that is carried out
  lifecycle::RunProgress before_;     ///< this round
  std::size_t done_now_ = 0;          ///< in this round
  std::size_t done_saved_ = 0;
  std::string last_trouble_;
};

}  // namespace muster::app
