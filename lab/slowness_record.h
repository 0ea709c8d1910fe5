// SPDX-License-Identifier: Apache-2.0
// How slow this machine has been lately, in steps: what limits of the twin follow. A step counts
// for an hour after it was seen last, so that a limit does not shrink while something waits for it,
// and so that words in which a limit stands do not change with every look.
#pragma once

#include "base/clock.h"

#include <array>
#include <optional>
#include <vector>

namespace muster::lab {

/// The largest is the bound: what still does not come then is broken, however busy the machine is.
inline constexpr std::array<double, 8> kSlownessSteps{1, 1.5, 2, 3, 5, 8, 12, 20};
inline constexpr std::chrono::hours kSlownessCounts{1};

class SlownessRecord {
 public:
  /// One measurement (lab/slowness.h). Of the last three the middle one counts: a single burst is
  /// no busy machine.
  void add(WallTime at, double measured);
  /// One of kSlownessSteps, rounded up; 1: idle, or nothing is known.
  double factor(WallTime now) const;

  /// What another process has seen counts, too.
  void merge(const SlownessRecord& other);
  std::string toJson() const;
  /// Whatever is no record is an empty one: it is measured anew.
  static SlownessRecord fromJson(std::string_view text);

 private:
  std::vector<double> last_;  ///< measurements, at most three
  std::array<std::optional<WallTime>, kSlownessSteps.size()>
      seen_;  ///< when the machine was last at least so slow
};

}  // namespace muster::lab
