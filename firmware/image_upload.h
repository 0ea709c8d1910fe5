// SPDX-License-Identifier: Apache-2.0
// Sends the current image to the BMC, and finds the task of an upload whose answer was lost.
#pragma once

#include "firmware/failure.h"

namespace muster::firmware {

class ImageUpload {
 public:
  ImageUpload(RunningWave& wave, WaveFailure& failure) : wave_(wave), failure_(failure) {}

  /// Once the BMC is idle.
  Async<StepResult> start();
  /// An upload may have been made, and nobody knows its task.
  Async<StepResult> findLost();

 private:
  Async<StepResult> send();
  Async<std::optional<lifecycle::Outcome>> supplyMayGo();
  Async<StepResult> refused(Target what, Error error);

  RunningWave& wave_;
  WaveFailure& failure_;
};

}  // namespace muster::firmware
