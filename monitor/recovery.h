// SPDX-License-Identifier: Apache-2.0
// Graded recovery: what is tried, one step after the other, when an action of a node has failed and
// the node takes no jobs.
//
//   retry → new-session → bmc-reset → power-cycle → ac-cycle → quarantine
//
// The inventory says which of them need no person (monitor.recovery). Each step is an action of its
// own in the journal with its own proof (the BMC answers, the power is on), and after each the
// failed action is tried again: only its success is success. Which step is next is read from the
// journal, so that neither a crash nor another controller loses count, and no step is taken twice
// for one trouble.
#pragma once

#include "bmc/bmc.h"
#include "inventory/model/monitor.h"
#include "lifecycle/model/phase.h"
#include "lifecycle/store/store.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::monitor {

inline constexpr std::string_view kRecoveryPrefix = "recovery.";  ///< of the facets
inline constexpr std::chrono::hours kTroubleCounts{24};  ///< an older failure is a person's

std::string_view toString(inventory::Rung rung);
/// The step that a facet stands for; nothing: it is none.
std::optional<inventory::Rung> rungOf(const lifecycle::FacetRef& facet);

/// The next step for a node. With Rung::Retry, and after a step that has worked, `action` is the
/// failed one.
struct RecoveryStep {
  inventory::Rung rung = inventory::Rung::Retry;
  lifecycle::Action action;  ///< empty id for Rung::Quarantine
  std::string why;
};
/// Pure. `journal`: the node's intents, newest first. Nothing: nothing has failed, something is
/// under way, or all that is allowed was tried.
std::optional<RecoveryStep> nextStep(const std::vector<lifecycle::Intent>& journal,
                                     const inventory::MonitorPolicy& policy, WallTime now);

/// The phase that takes the steps of a BMC. It has a goal only for what was asked for, so no plan
/// of a person's ever holds one.
class RecoverySteps : public lifecycle::Phase {
 public:
  virtual void ask(const lifecycle::Subject& subject, inventory::Rung rung) = 0;
};
std::unique_ptr<RecoverySteps> makeRecoverySteps(bmc::BmcFleet& bmcs, Clock& clock);

}  // namespace muster::monitor
