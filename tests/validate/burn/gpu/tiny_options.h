// SPDX-License-Identifier: Apache-2.0
// What a burn of a runtime of the tests does: little, so that a host multiplies it.
#pragma once

#include "validate/burn/engine.h"

namespace muster::burn {

inline Options tinyOptions() {
  Options options;
  options.n = kTile;
  options.memory_bytes = 1 << 20;
  options.copy_bytes = 1 << 20;
  return options;
}

}  // namespace muster::burn
