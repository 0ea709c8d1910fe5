// SPDX-License-Identifier: Apache-2.0
// How an installation ends badly: said, journaled, remembered.
#pragma once

#include "firmware/running_wave.h"

namespace muster::firmware {

/// What is said about a component that is given up.
struct FailureReport {
  std::string text, evidence, what_to_do;
  bool written = true;  ///< its image may be on the machine
};

class WaveFailure {
 public:
  explicit WaveFailure(RunningWave& wave) : wave_(wave) {}

  void reportFinding(const FailureReport& report);
  /// What was staged beside it is switched on first: every part of a wave is allowed without the
  /// rest, and whoever plans again shall find it running instead of staging it once more.
  Continuation skipComponent(Target what, FailureReport report);
  /// What is staged now does not come to run.
  Continuation failWave(FailureReport report);
  /// The whole intent, whatever it was about.
  Continuation abort(const std::string& why);
  /// The journal knows the end before anybody is told, so that a process that dies here says the
  /// same again. Errors: Conflict, always
  Async<StepResult> repeat();

 private:
  RunningWave& wave_;
};

}  // namespace muster::firmware
