// SPDX-License-Identifier: Apache-2.0
// Makes the previous image of the one component run again that its activation left worse.
#pragma once

#include "firmware/failure.h"

namespace muster::firmware {

class WaveRollback {
 public:
  WaveRollback(RunningWave& wave, WaveFailure& failure) : wave_(wave), failure_(failure) {}

  /// Components that show nothing any more, and besides those of the BMC that cannot be read: then
  /// no single image is the cause. What shows its old version is not worse; what went back already
  /// is not taken back again.
  std::vector<Target> degradedComponents() const;
  /// Journaled before it is ordered, and ordered once: a process that dies here goes on with the
  /// activation, and the inventory decides.
  Async<StepResult> rollBack(Target worse, std::string seen);

 private:
  Async<std::string> versionBefore(Target worse);

  RunningWave& wave_;
  WaveFailure& failure_;
};

}  // namespace muster::firmware
