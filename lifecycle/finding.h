// Finding: something is wrong, with evidence and with what to do.
#pragma once

#include "base/clock.h"
#include "base/diagnostic.h"
#include "lifecycle/facet.h"

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
};

/// What a node's console said last, as plain lines (no terminal sequences); none where it has no console. For the evidence of whatever
/// fails or is late.
using ConsoleLines = std::function<std::vector<std::string>(const Subject&)>;
inline constexpr std::string_view kConsoleEvidence = "console";  ///< its key in a finding's evidence

}  // namespace muster::lifecycle
