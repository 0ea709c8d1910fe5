// SPDX-License-Identifier: Apache-2.0
// The agent: dials out to its controller, polls, runs what it is handed. It listens on nothing and
// never gives up. Of several controllers it speaks to the one that answers, and tells it
// everything; who has ordered what is the fences' business (adr/0010, adr/0123).
//
// One control thread. A task is stored in the table before it starts. Of the kinds that change the
// node (all but Inspect and Probe) one runs at a time, in the order they came; each ends at its
// deadline.
#pragma once

#include "agent/core/identity.h"
#include "agent/core/options.h"
#include "agent/core/task_context.h"
#include "agent/core/task_table.h"
#include "base/async/change_notifier.h"
#include "base/clock.h"
#include "base/version.h"
#include "wire/controllers.h"
#include "wire/delta_poll.h"
#include "wire/health_rules.h"

#include <boost/asio/cancellation_signal.hpp>

#include <functional>
#include <list>
#include <memory>
#include <random>
#include <set>
#include <string>

namespace muster::agent {

inline constexpr std::string_view kAgentVersion = kVersion;
inline constexpr std::chrono::milliseconds kFirstBackoff{250};
inline constexpr std::chrono::seconds kLongestBackoff{
    5};  ///< a restarted controller is found within this
inline constexpr std::chrono::seconds kFirstAnswer{
    15};  ///< of one of several controllers that has not answered yet: it is asked to answer at
          ///< once
inline constexpr std::chrono::seconds kProbeRefresh{60};
inline constexpr std::chrono::seconds kHealthRefresh{
    10};  ///< no more often; a poll waits kPollWait

/// The agent's access to its machine, as functions so that tests need no machine.
struct MachineAccess {
  std::function<Async<wire::Hardware>()> hardware;
  std::function<Task<std::map<std::string, std::string>>(std::set<std::string> watched)> probes;
  std::function<Task<wire::HealthReport>()>
      health;  ///< empty: not looked at (the RAM OS has no jobs)
  std::function<void()>
      reboot;  ///< restarts the machine; called once its task has been reported Done
  std::function<void()> give_way;  ///< starts the live image; called likewise, and need not return
  ClientFactory clients;
};

class Agent {
 public:
  /// Errors: those of opening the table of tasks
  static Result<std::unique_ptr<Agent>> create(AgentOptions options, TaskHandlers handlers,
                                               MachineAccess machine, Clock& clock);
  /// Enrolls when needed, then polls until `stop`. Ends when its tasks have ended too.
  Task<void> run();
  /// Cancels what runs. Thread of `run`.
  void stop();

  /// A certificate for a key of this node, by the agent's own session. For the handler that
  /// installs a system.
  Async<wire::EnrollResponse> certify(std::string csr_pem);
  std::string nodeName() const { return identity_ ? identity_->node : options_.node; }

 private:
  struct Running;
  Agent(AgentOptions options, TaskHandlers handlers, MachineAccess machine, Clock& clock,
        TaskTable table, wire::Controllers controllers);

  Task<void> pollLoop();
  Async<void> ensureIdentity();
  Async<void> pollOnce();
  Task<void> collectState();
  Task<void> collectHealth();
  void evaluate(const wire::HealthReport& report);
  void useHealthRules(std::string text);
  void updateHealthRules(const std::string& text);
  Async<wire::PollResponse> poll();
  wire::PollRequest pollRequest();
  void handleResponse(const wire::PollResponse& response, const std::vector<std::string>& reported);
  Task<void> backOff(Error error);
  void updateControllers(const std::string& announced);
  void begin(const wire::AgentTask& task);
  void refuse(const wire::AgentTask& task, const Error& why);
  Result<void> admit(const wire::AgentTask& task) const;
  void startWaiting(asio::any_io_executor executor);
  void endUnwanted(const std::vector<std::string>& ids);
  Task<void> carryOut(std::shared_ptr<Running> running);
  Async<nlohmann::json> invoke(wire::AgentTask task, TaskContextPtr context);
  void leaveAfter(const wire::AgentTask& task);
  void finish(const wire::AgentTask& task, Result<nlohmann::json> outcome);
  bool busy() const { return !running_.empty() || !waiting_.empty(); }

  AgentOptions options_;
  TaskHandlers handlers_;
  MachineAccess machine_;
  Clock& clock_;
  TaskTable table_;
  wire::Controllers controllers_;  ///< options_.url is its present one
  std::string announced_;          ///< the list of controllers as received last
  std::string boot_id_;
  std::optional<Identity> identity_;
  std::unique_ptr<io::HttpClient> client_;
  std::chrono::steady_clock::time_point
      renew_not_before_{};  ///< after a renewal that failed while the certificate still holds

  std::string session_;  ///< of the controller heard last
  wire::DeltaPoll delta_;
  bool all_reported_ = false;  ///< hardware and all results are known to that session
  bool hardware_tried_ = false;
  bool hardware_fresh_ = false;  ///< the last look succeeded
  std::string hardware_;         ///< JSON; empty when it could not be read
  std::string health_, reported_hardware_, reported_health_;  ///< JSON; as reported to that session
  std::optional<std::chrono::steady_clock::time_point> health_at_;
  std::string health_rules_;                ///< as received last; empty: never
  std::optional<wire::HealthRules> rules_;  ///< the same; nullopt: they cannot be read
  bool fitness_lost_ = false;               ///< said
  std::map<std::string, std::string> probes_;
  bool probes_stale_ = true;
  std::chrono::steady_clock::time_point probed_at_{};
  std::uint64_t last_sequence_ = 0;

  std::map<std::string, wire::AgentTaskReport>
      refused_;  ///< orders of a controller that lost its claim: reported to it, never kept

  std::list<wire::AgentTask> waiting_;
  std::list<std::shared_ptr<Running>> running_;
  std::weak_ptr<TaskContext>
      exclusive_;  ///< alive while a task that changes the node is, also one left behind
  std::string
      leaving_;  ///< the task whose end must be reported before the machine leaves this system
  std::function<void()> leave_;  ///< … and how
  async::ChangeNotifier task_ended_;

  bool stopping_ = false;
  async::ChangeNotifier stopped_;
  std::chrono::milliseconds backoff_{0};
  std::set<std::string> logged_errors_;  ///< logged since the last success
  std::minstd_rand jitter_{std::random_device{}()};
};

}  // namespace muster::agent
