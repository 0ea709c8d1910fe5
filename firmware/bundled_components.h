// SPDX-License-Identifier: Apache-2.0
// One package for several components of a tray: it goes there once, and is written into all of
// them, those of later waves too.
#pragma once

#include "firmware/running_wave.h"

namespace muster::firmware {

/// What comes with an image, or why all of that cannot be sent.
struct CoUpdated {
  std::vector<Target> others;
  std::string why_not;
};

class BundledComponents {
 public:
  explicit BundledComponents(RunningWave& wave) : wave_(wave) {}

  /// What else is written when this image is sent. Errors: of the BMC, Unavailable (another
  /// component of the package cannot be read), InvalidInput
  Async<CoUpdated> coUpdatedWith(Target first, Schedule schedule);

 private:
  std::string whyNotWith(const Target& other, const Schedule& schedule,
                         const std::string& sha256) const;
  std::string whyNotTogether(const Target& first, const std::vector<Target>& others) const;

  RunningWave& wave_;
};

}  // namespace muster::firmware
