// SPDX-License-Identifier: Apache-2.0
// How much of a sweep runs: CI takes a sample, evenly over the points; with MUSTER_CRASH_ALL=1, as
// the tests labelled `long` set it, every point.
#pragma once

#include <cstdlib>

namespace muster::test {

inline bool takesEveryPoint() { return std::getenv("MUSTER_CRASH_ALL") != nullptr; }

/// The distance of the points that are taken. CI's sweeps were tuned for minutes; a run of all
/// tests wants a few seconds of each, so that a sample is a third of what a sweep names.
inline int pointsApart(int named) {
  constexpr int kShare = 3;
  return takesEveryPoint() ? 1 : named * kShare;
}

/// Which of `ways` a point suffers: all of them, or in a sample one after the other.
inline bool suffers(int point, int apart, int way, int ways) {
  return takesEveryPoint() || point / apart % ways == way;
}

}  // namespace muster::test
