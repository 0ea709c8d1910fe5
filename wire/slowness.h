// SPDX-License-Identifier: Apache-2.0
// How an agent in a twin learns that its place is slow: a header of answers to its polls. A machine
// does not see that its host gives it less than a processor. Without it the place is as fast as
// limits mean it; a real cluster never sends it.
#pragma once

#include <string_view>

namespace muster::wire {

inline constexpr const char* kSlownessHeader = "Muster-Slowness";
inline constexpr double kMaxReportedSlowness = 20;  ///< more is not believed

}  // namespace muster::wire
