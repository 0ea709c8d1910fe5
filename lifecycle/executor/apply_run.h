// SPDX-License-Identifier: Apache-2.0
// A plan being carried out: one coroutine a subject, needs between them, intents of earlier runs.
// Internal to lifecycle/.
#pragma once

#include "base/async/event.h"
#include "base/async/semaphore.h"
#include "inventory/model/limits.h"
#include "lifecycle/executor/action_run.h"
#include "lifecycle/executor/adaptive_semaphore.h"

#include <unordered_map>

namespace muster::lifecycle {

/// What links and boot servers bear is found by trying, what power bears is the inventory's word
/// (`limits`).
inline constexpr AdaptiveLimit::Bounds kResets{.floor = 16,
                                               .start = 512,
                                               .ceiling = kMaxConcurrentSubjects,
                                               .doubles_every = std::chrono::seconds(5)};
inline constexpr AdaptiveLimit::Bounds kWipes{
    .floor = 8, .start = 256, .ceiling = kMaxConcurrentSubjects};

struct DisruptionBudget {
  DisruptionBudget(Clock& clock, const inventory::Limits& limits)
      : resets(clock, kResets.under(limits.restarts)),
        wipes(clock, kWipes.under(limits.imagings)) {}
  AdaptiveSemaphore resets, wipes;
};

class ApplyRun {
 public:
  ApplyRun(Services services, Plan plan)
      : services_(std::move(services)),
        plan_(std::move(plan)),
        hash_(plan_.hash()),
        steps_(plan_.actions.size()),
        slots_(services_.subjects_at_once),
        claims_(services_) {}
  ApplyRun(const ApplyRun&) = delete;

  Async<ApplyReport> run();

 private:
  enum class StepState { Waiting, Done, Failed, Blocked, Skipped, Held };
  struct Step {
    StepState state = StepState::Waiting;
    async::Event finished;
  };
  Result<void> adoptIntents(std::vector<Intent>& orphans);
  Task<void> endOrphan(Intent intent);
  Task<void> verifyOrphan(Intent intent);
  Task<void> runSubject(std::vector<std::size_t> steps);
  Task<void> runSteps(std::vector<std::size_t> steps);
  struct Missing {
    std::string why;
    bool held = false;  ///< because another controller works on what it needs
  };
  Async<void> runAll(std::vector<Intent> orphans);
  Result<void> openRequest();
  Task<void> closeRequest();
  /// Claims the subject and reads again what another controller has left. Answers why it is not
  /// ours; empty: it is.
  Task<std::string> claimSubject(Subject subject);
  Task<Missing> awaitNeeds(std::size_t index);
  Task<bool> runStep(std::size_t index, std::size_t rank);
  Task<ActionResult> runAction(std::size_t index);
  AdaptiveSemaphore* budgetOf(const Action& action);
  void finishStep(std::size_t index, StepState state, const std::string& why);

  const Services services_;
  const Plan plan_;
  const std::string hash_;
  FactSet facts_;
  std::vector<Step> steps_;
  std::unordered_map<std::string, std::size_t> index_;  ///< action id → step
  std::unordered_map<std::string, Intent> open_;        ///< action id → intent to take up
  async::Semaphore slots_;
  LeaseKeeper claims_;
  Request request_;
  ApplyReport report_;
};

}  // namespace muster::lifecycle
