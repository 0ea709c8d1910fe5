// SPDX-License-Identifier: Apache-2.0
// From the last upload of a wave until it is switched on: resets, each journaled before it happens.
#pragma once

#include "firmware/failure.h"

namespace muster::firmware {

class ActivationSequence {
 public:
  ActivationSequence(RunningWave& wave, WaveFailure& failure) : wave_(wave), failure_(failure) {}

  /// Nothing is switched while the BMC works on an update, whoever's it is.
  Async<StepResult> activate();
  /// A reset of the BMC may have been done already.
  Async<StepResult> activateAgain();
  /// A root of trust fills its second slot behind everybody's back; a power cut under it leaves one
  /// good copy less, or none.
  Async<StepResult> awaitCopies();
  /// The guest is asked first; a node that is off is only switched on.
  Async<StepResult> powerOff();
  /// A cut that may have been made is not made again while what it started may still be loading.
  Async<StepResult> cutStandby();
  /// From here on power is only ever switched on: what was uploaded may be flashed in POST.
  Async<StepResult> powerOn();
  /// All that is staged runs. CPLDs and roots of trust load at standby, so they run while the host
  /// is still off.
  Async<StepResult> allRun();
  /// The BMC does not answer, and muster may have died between off and on.
  Async<void> restoreStandby();
  Async<bool> isOff();

 private:
  Async<StepResult> beginStabilizing();
  Async<void> noteStarting();
  bool owesRestart() const;

  RunningWave& wave_;
  WaveFailure& failure_;
};

}  // namespace muster::firmware
