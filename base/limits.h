// SPDX-License-Identifier: Apache-2.0
// Limits of waiting where the place itself can be slow. They are written for real clusters, whose
// machines nobody else uses; in the twin nodes, BMCs and switches are programs on one machine, and
// limits follow how slow that one is (lab/twin_clock.h).
#pragma once

#include "base/clock.h"

#include <string>

namespace muster {

/// The clock of a place that can be slower than limits were written for. Time is no other there,
/// only limits are.
class SlowClock : public Clock {
 public:
  /// So many times as long as usual takes what is done here now: at least 1. It may be another with
  /// every call.
  virtual double slowness() const = 0;
};

/// 1, except with a SlowClock.
double slownessOf(const Clock& clock);

/// How long a limit is here and now. Without a SlowClock that is the limit itself.
std::chrono::milliseconds limitHere(const Clock& clock, std::chrono::milliseconds limit);
/// The same in whole seconds, for limits that are sent to others; at most `most`, but never shorter
/// than the limit itself.
std::chrono::seconds limitHere(const Clock& clock, std::chrono::seconds limit,
                               std::chrono::seconds most);

/// "600 s", or "3000 s (600 s on an idle machine; this one is 5 times slower)".
std::string limitText(double slowness, std::chrono::seconds limit);
std::string limitText(const Clock& clock, std::chrono::seconds limit);

}  // namespace muster
