// Finding: something is wrong, with evidence and with what to do.
#pragma once

#include "base/clock.h"
#include "base/diagnostic.h"
#include "lifecycle/facet.h"

#include <string>

namespace muster::lifecycle {

struct Finding {
  FacetRef facet;
  Severity severity = Severity::Error;
  std::string text;      ///< what is wrong, in one sentence
  std::string evidence;  ///< what was seen: numbers with units, output lines; may be JSON
  std::string what_to_do;
  WallTime at{};
};

}  // namespace muster::lifecycle
