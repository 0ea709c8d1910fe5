// SPDX-License-Identifier: Apache-2.0
// Follows the BMC's task of an upload to its end, or waits as long as a flash takes where there is
// no such task any more. Whatever a task says, the inventory decides.
#pragma once

#include "firmware/failure.h"

namespace muster::firmware {

class UpdateTask {
 public:
  UpdateTask(RunningWave& wave, WaveFailure& failure) : wave_(wave), failure_(failure) {}

  /// While the task runs nothing else is asked.
  Async<StepResult> follow();
  /// Nobody says how far it is. Nothing is sent and nothing switched until the new version shows,
  /// or until such a flash would be over twice.
  Async<StepResult> awaitUnseen();

 private:
  Async<StepResult> ended(Target what, bmc::TaskStatus status);
  Async<StepResult> taken();
  Async<StepResult> takenUntilRestart();
  bool waitsForRestart(const bmc::TaskStatus& status);
  Async<StepResult> notInstalled(Target what, bmc::TaskStatus status);
  std::chrono::minutes usualFlashTime(const Target& what) const;

  RunningWave& wave_;
  WaveFailure& failure_;
};

}  // namespace muster::firmware
