// A plan being carried out: one coroutine a subject, needs between them, intents of earlier runs. Internal to lifecycle/.
#pragma once

#include "lifecycle/action_run.h"
#include "lifecycle/coordinate.h"

#include <unordered_map>

namespace muster::lifecycle {

class ApplyRun {
 public:
  ApplyRun(const Services& services, Plan plan)
      : services_(services), plan_(std::move(plan)), hash_(plan_.hash()), steps_(plan_.actions.size()), places_(kMaxConcurrentSubjects) {}
  ApplyRun(const ApplyRun&) = delete;

  Async<ApplyReport> run();

 private:
  enum class StepState { Waiting, Done, Failed, Blocked, Skipped };
  struct Step {
    StepState state = StepState::Waiting;
    Signal settled;
  };
  Result<void> adoptIntents(std::vector<Intent>& orphans);
  Task<void> settleOrphan(Intent intent);
  Task<void> runSubject(std::vector<std::size_t> steps);
  Task<void> walk(std::vector<std::size_t> steps);
  Task<std::string> awaitNeeds(std::size_t index);
  Task<bool> runStep(std::size_t index);
  void settle(std::size_t index, StepState state, const std::string& why);

  const Services& services_;
  const Plan plan_;
  const std::string hash_;
  FactSet facts_;
  std::vector<Step> steps_;
  std::unordered_map<std::string, std::size_t> index_;  ///< action id → step
  std::unordered_map<std::string, Intent> open_;        ///< action id → intent to take up
  Places places_;
  ApplyReport report_;
};

}  // namespace muster::lifecycle
