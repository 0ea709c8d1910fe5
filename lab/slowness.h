// SPDX-License-Identifier: Apache-2.0
// How much slower than alone this machine runs what is started on it now. Measured, not looked up:
// limits of the twin follow it.
#pragma once

namespace muster::lab {

inline constexpr double kMostSlowness =
    50;  ///< a machine that is busier than this does not bring a rack up

/// Wall-clock time over processor time of `threads` threads that compute: 1 on an idle machine,
/// about 5 where ten programs share two processors. Effect: 50 ms of processor time on each thread
double slowness(unsigned threads);

}  // namespace muster::lab
