// SPDX-License-Identifier: Apache-2.0
// RunRounds: what happens in a run: it is planned, agreed to, and carried out in rounds as `muster
// apply` does, until nothing is left. Internal to app/.
#pragma once

#include "app/plans/current_impact.h"
#include "app/runs/run_rows.h"
#include "lifecycle/executor/engine.h"

#include <memory>
#include <set>
#include <string>

namespace muster::lifecycle {
class EffectiveCluster;
class RolloutRecord;
}  // namespace muster::lifecycle
namespace muster::provision {
class Erasures;
}
namespace muster::validate {
class SynchronizedLoad;
}

namespace muster::app {

class BmcChanger;
class ImageBuilder;
struct IsolationServices;

/// What one process remembers from one executor to the next: while it lives, a run that was dropped
/// for a moment (a command had the state folder) is not one whose process has died.
struct RunMemory {
  std::set<std::string> begun;
  std::string under_way;    ///< id of the run that is worked on now; empty: none
  bool begin_none = false;  ///< somebody waits for the end of what is under way
  /// Whether the inventory is to be read again first; from any thread. Empty: never.
  std::function<bool()> is_reload_due;
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
  provision::Erasures* erasures = nullptr;              ///< null: it cannot erase
  lifecycle::EffectiveCluster* live = nullptr;          ///< `cluster`; null: it cannot roll out
  const lifecycle::Phases* phases = nullptr;            ///< likewise
  /// Whether it may be undone now, by the inventory as it is declared. Errors: says why not
  std::function<Result<void>(const lifecycle::RolloutRecord&)> may_roll_back = {};
  validate::SynchronizedLoad* synchronized_load = nullptr;  ///< null: nobody can ask for one
  std::shared_ptr<const IsolationServices> isolation = {};  ///< null: it cannot test between nodes
  std::shared_ptr<ImageBuilder> images = {};                ///< null: it cannot build images
  std::shared_ptr<BmcChanger> bmcs = {};                    ///< null: it cannot change BMCs
};

/// What is under way and obeys orders by itself, so that it is not dropped for them.
class OrderHandler {
 public:
  OrderHandler() = default;
  virtual ~OrderHandler() = default;
  OrderHandler(const OrderHandler&) = delete;
  /// Whether it is under way, and so will obey.
  virtual bool obeys(lifecycle::RunOrder order, const std::string& by) = 0;
  /// What is done so far goes to the row.
  virtual void saveProgress(const std::string& id) = 0;
};

class RunRounds {
 public:
  /// All are borrowed.
  RunRounds(RunWork& work, RunRows& rows, RunMemory& memory);
  RunRounds(const RunRounds&) = delete;

  /// From the state that it is in, as far as it goes without people. May be dropped anywhere.
  /// Errors: of the store, and what ends the run or is tried again (RunRows::endWith)
  Async<void> carryOut(lifecycle::Run run);
  /// Whether what is under way obeys the order by itself, and needs not to be dropped.
  bool obeys(lifecycle::RunOrder order, const std::string& by);
  /// What is done so far goes to the row.
  void saveProgress(const std::string& id);

  // Of what RunKindRules::carryOut is made.

  RunWork& work() { return work_; }
  RunRows& rows() { return rows_; }
  /// Rounds of a plan until nothing is left; `first` is the plan of the first one.
  Async<void> converge(lifecycle::Run run, std::optional<lifecycle::Plan> first);
  /// One plan by the engine; progress and problems go to the row.
  Async<lifecycle::ApplyReport> apply(lifecycle::Run run, lifecycle::Plan plan);
  /// Who obeys orders until another run is carried out.
  void setOrderHandler(std::unique_ptr<OrderHandler> handler);

 private:
  Async<void> begin(lifecycle::Run run);
  Async<void> goOn(lifecycle::Run run, std::optional<lifecycle::Plan> first);
  Result<void> end(const std::string& id, lifecycle::RunState state, lifecycle::RunReason reason,
                   const std::string& text);

  RunWork& work_;
  RunRows& rows_;
  RunMemory& memory_;
  std::unique_ptr<OrderHandler> order_handler_;  ///< null: it is dropped when something is ordered
  std::optional<lifecycle::Plan> made_;          ///< just now, for the run `made_for_`
  std::string made_for_;
  std::set<std::string> action_ids_;  ///< of the plan that is carried out
  lifecycle::RunProgress before_;     ///< this round
  std::size_t done_now_ = 0;          ///< in this round
  std::size_t done_saved_ = 0;
};

}  // namespace muster::app
