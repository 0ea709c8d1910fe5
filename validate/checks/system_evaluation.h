// SPDX-License-Identifier: Apache-2.0
// What the system's answers mean. Pure, but for clockState.
#pragma once

#include "validate/checks/check_row.h"

namespace muster::validate {

struct ClockState {
  bool synchronised = false;
  double error_ms = 0;  ///< the kernel's own bound
};
/// Source: adjtimex(2), which every time service steers
Result<ClockState> clockState();
Verdict evaluateClock(const ClockState& seen, double most_error_ms);

/// Lines of the kernel's log that tell of hardware, each with its meaning. Bounded.
std::vector<std::string> troublesIn(std::string_view log);
/// XIDs that ask for more than a restart of the job, and SXIDs of NVSwitches that are not called
/// non-fatal.
std::vector<std::string> xidsIn(std::string_view log);

/// Settings: what the machine has of the table against defaults or `wanted` {name: value}. A name
/// that is wanted and not there is no data.
Verdict evaluateTuning(const nlohmann::json& wanted, const Host& host);

/// Of each processor, how long it takes to wake from the deepest idle state that is switched on, in
/// µs; nothing when the kernel does not tell.
std::map<std::string, double> idleLatencies(const Host& host);
/// All processors must be alike: one that differs has another setting. `max_us`: what is allowed;
/// 0: whatever all have.
Verdict evaluateIdle(const std::map<std::string, double>& latencies, double max_us,
                     std::string_view driver);

}  // namespace muster::validate
