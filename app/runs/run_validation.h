// SPDX-License-Identifier: Apache-2.0
// The validation of a run: gates that a person asks for again. It is an apply that holds nothing
// but gates, so that drains, claims, journal and take-up are the engine's. What it runs again are
// gates that were last seen before the run was asked for: that moment is in the run's row, so
// whoever goes on with it knows what is done. Internal to app/.
#pragma once

#include "app/runs/run_rounds.h"

namespace muster::app {

/// As if the gates that are to run again had never run. Errors: NotFound (a gate), Conflict (the
/// nodes need something else first), InvalidInput (a rack cannot bear the load that was asked for)
Result<lifecycle::Plan> planValidation(const RunWork& work, const lifecycle::Run& run,
                                       const lifecycle::FactSet& facts,
                                       const lifecycle::Policy& policy);
/// Before the plan is carried out: what it is to see again is forgotten. Of a run of another kind:
/// nothing.
Result<void> forgetGates(const RunWork& work, const lifecycle::Run& run);

/// While it lives the nodes of each rack begin the gates of the plan at one moment, where the run
/// asks for that.
class LoadAtOnce {
 public:
  static Result<LoadAtOnce> begin(const RunWork& work, const lifecycle::Run& run,
                                  const lifecycle::Plan& plan);
  LoadAtOnce(LoadAtOnce&& other) noexcept : load_(std::exchange(other.load_, nullptr)) {}
  ~LoadAtOnce();

 private:
  explicit LoadAtOnce(validate::SynchronizedLoad* load) : load_(load) {}
  validate::SynchronizedLoad* load_;  ///< null: nothing was asked for
};

}  // namespace muster::app
