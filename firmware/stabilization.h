// SPDX-License-Identifier: Apache-2.0
// When a wave is over: everything runs, several looks in a row, and no network adapter is still
// coming up. One that does not come up gets one more restart of the host.
#pragma once

#include "firmware/rollback.h"

namespace muster::firmware {

inline constexpr std::chrono::minutes kStabilizeLimit{
    15};  ///< a host shows its new BIOS only after POST

class Stabilization {
 public:
  Stabilization(RunningWave& wave, WaveFailure& failure)
      : wave_(wave), failure_(failure), rollback_(wave, failure) {}

  /// The new versions must show until kStabilizeLimit after the activation. `seen`: what shows
  /// instead, for people.
  Async<StepResult> awaitVersions(std::string seen);
  /// The wave is over once everything runs at several looks in a row, and no adapter is late at any
  /// of them.
  Async<StepResult> waitUntilStable();

 private:
  Continuation restartForAdapter(const std::string& name);
  Async<StepResult> endWave();

  RunningWave& wave_;
  WaveFailure& failure_;
  WaveRollback rollback_;
};

}  // namespace muster::firmware
