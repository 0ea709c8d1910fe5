// SPDX-License-Identifier: Apache-2.0
// Which image of the wave is sent next; when the wave lacks none, its activation.
#pragma once

#include "firmware/bundled_components.h"
#include "firmware/failure.h"

namespace muster::firmware {

class NextUpload {
 public:
  NextUpload(RunningWave& wave, WaveFailure& failure)
      : wave_(wave), failure_(failure), bundled_(wave) {}

  Async<StepResult> choose();

 private:
  Async<std::string> whyNot(Target target);
  Async<StepResult> begin(Target next, Schedule schedule);

  RunningWave& wave_;
  WaveFailure& failure_;
  BundledComponents bundled_;
};

}  // namespace muster::firmware
