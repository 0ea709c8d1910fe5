// SPDX-License-Identifier: Apache-2.0
// Finding: something is wrong, with evidence and with what to do.
#pragma once

#include "base/clock.h"
#include "base/diagnostic.h"
#include "lifecycle/model/facet.h"

#include <functional>
#include <string>
#include <vector>

namespace muster::lifecycle {

struct Finding {
  FacetRef facet;
  Severity severity = Severity::Error;
  std::string text;      ///< what is wrong, in one sentence
  std::string evidence;  ///< what was seen: numbers with units, output lines; may be JSON
  std::string what_to_do;
  WallTime at{};
  std::string source = {};  ///< who raised it: a word below, or engineSource(); empty: an older
                            ///< muster, which did not say
};

/// An action of this phase. Only these are the engine's to end when nothing wants their facet any
/// more (docs/adr/0118).
inline constexpr std::string_view kEngineSource = "engine/";
inline std::string engineSource(std::string_view phase) {
  return std::string(kEngineSource).append(phase);
}
inline constexpr const char* kMonitorSource =
    "monitor";  ///< checks of `muster monitor`, and its circuit breaker
inline constexpr const char* kQuarantineSource =
    "quarantine";  ///< its text names who put the node there
inline constexpr const char* kDiscoverySource = "discovery";
inline constexpr const char* kEnrollmentSource =
    "enrolment";                                         ///< an agent that called and was refused
inline constexpr const char* kBmcSource = "bmc-health";  ///< the BMC's log and sensors
inline constexpr const char* kIsolationSource = "isolation";  ///< `muster validate isolate`

/// What a node's console said last, as plain lines (no terminal sequences); none where it has no
/// console. For the evidence of whatever fails or is late.
using ConsoleLines = std::function<std::vector<std::string>(const Subject&)>;
inline constexpr std::string_view kConsoleEvidence =
    "console";  ///< its key in a finding's evidence

}  // namespace muster::lifecycle
