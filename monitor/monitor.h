// SPDX-License-Identifier: Apache-2.0
// Monitor: `muster monitor`, the controller that stays. It looks often and lightly, takes out of
// their pools the nodes that may not take jobs, quarantines, and – only where the inventory's
// `keep` says so – repairs. docs/adr/0015, docs/monitor.md
//
// Three coroutines on the control thread: one looks and decides every interval, one carries out
// what was decided, as plans through the engine, so that every drain is a journaled intent with a
// reason, and one plans ways back, which takes whole looks at nodes. When the decision changes
// while jobs are still waited for, the running plan is dropped as by a crash and the next one takes
// its intents up again. What has ended in a plan that still waits for other nodes is let go of at
// the next look: docs/adr/0090.
#pragma once

#include "base/async/event.h"
#include "lifecycle/executor/engine.h"
#include "monitor/alerts.h"
#include "monitor/breakers.h"
#include "monitor/fleet_poll.h"
#include "monitor/monitor_status.h"
#include "monitor/recovery.h"
#include "monitor/rejoin.h"
#include "monitor/retry_state.h"

#include <map>
#include <memory>
#include <string>

namespace muster::monitor {

/// What the monitor works with; borrowed.
struct MonitorServices {
  const inventory::Cluster& cluster;
  lifecycle::Phases all;    ///< for acting
  lifecycle::Phases light;  ///< for looking
  lifecycle::Store& store;
  Clock& clock;
  lifecycle::EventSink sink;
  lifecycle::Origin origin;
  RecoverySteps* recovery = nullptr;             ///< one of `all`; null: nothing is recovered
  lifecycle::ConsoleLines console = {};          ///< for findings
  std::shared_ptr<RetryState> retry_state = {};  ///< of the run before; null: there was none
  lifecycle::Engine* engine = nullptr;  ///< shared with others that act; null: one of its own
};

/// The monitor's name among the workers of a controller (lifecycle::Worker).
inline constexpr std::string_view kMonitorWorker = "the monitor";

class Monitor {
 public:
  explicit Monitor(MonitorServices services);

  /// Never ends by itself; ends by cancellation, as by a crash.
  Task<void> run();
  /// One look and what is decided from it, for `run` and for tests. Errors: of the store
  Async<Decision> reconcile();
  /// What is to be done now, by action id; empty: nothing.
  const std::map<std::string, lifecycle::Action>& wanted() const { return wanted_; }

 private:
  Task<void> pollLoop();
  Task<void> actLoop();
  Task<void> rejoinLoop();
  using Actions = std::map<std::string, lifecycle::Action>;
  /// One that is wanted: what tells whether it has ended since, and whether the plan works on it.
  struct Watch {
    std::string last_end;  ///< its newest closed intent when it came to be wanted
    int idle = 0;          ///< looks in a row at which the plan did not hold its node
  };
  Result<void> releaseFinished();
  Result<std::optional<lifecycle::IntentState>> endOf(const std::string& id,
                                                      const lifecycle::Action& action) const;
  Result<void> watch(const Actions& now);
  bool isClaimedByOther(const lifecycle::Subject& subject) const {
    return claimed_by_others_.contains(subject);
  }
  /// `knows_all`: no node was left out because somebody else works on it.
  Result<void> applyDecision(const FleetSnapshot& snapshot, const Decision& decision,
                             bool knows_all);
  Result<void> want(const FleetSnapshot& snapshot, const Decision& decision);
  void addRejoins(Actions& now);
  std::map<std::string, lifecycle::Action> actionsFor(const FleetSnapshot& snapshot,
                                                      const Decision& decision);
  bool isHeldByPerson(const FleetSnapshot& snapshot, const NodeName& node,
                      const std::string& action);
  Result<void> resumeRecovery(const FleetSnapshot& snapshot, Actions& now);
  bool takesNoJobs(const FleetSnapshot& snapshot, const inventory::Node& node) const;
  Result<void> recover(const FleetSnapshot& snapshot,
                       std::map<std::string, lifecycle::Action>& now);
  bool isBackingOff(const std::string& id) const;
  std::optional<lifecycle::Action> repairOf(const inventory::Node& node,
                                            const lifecycle::FactSet& facts) const;
  Result<std::set<std::string>> orphanedIntents(
      const std::map<std::string, lifecycle::Action>& actions, const Decision& decision);
  Result<lifecycle::Plan> planOf(const std::map<std::string, lifecycle::Action>& actions) const;
  void recordResult(const std::string& id, bool well);
  Result<void> recordResults();
  Result<void> writeHeartbeat(const Decision& decision, const FleetSnapshot& snapshot);
  void note(std::string text);

  MonitorServices services_;
  std::shared_ptr<RetryState> retry_state_;
  std::unique_ptr<lifecycle::Engine> own_engine_;
  lifecycle::Engine& engine_;
  FleetPoll fleet_poll_;
  Breakers breakers_;
  AlertPublisher alerts_;
  Rejoin rejoin_;
  Actions rejoining_;  ///< planned, and for the next look to take up
  std::map<std::string, lifecycle::Action> wanted_;
  std::map<std::string, Watch> watched_;  ///< of each that is wanted
  std::set<lifecycle::Subject>
      claimed_by_others_;  ///< other controllers work on them, as of the last look
  std::set<std::string>
      intents_to_end_;  ///< action ids of intents of ours that nothing wants any more
  std::set<lifecycle::Subject> subjects_to_end_;
  bool acting_ = false;
  std::map<NodeName, std::string>
      deferred_;  ///< what is not done because a person has the node, as of the last look
  std::shared_ptr<async::Event> changed_;
  std::string last_problem_;
};

}  // namespace muster::monitor
