// SPDX-License-Identifier: Apache-2.0
// The table of the programs that hold parsers only.
#include "tests/fuzz/targets.h"

namespace muster::fuzz {

std::vector<Target> allTargets() {
  std::vector<Target> all;
  for (const auto part : {networkTargets(), messageTargets(), httpTargets(), inventoryTargets()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace muster::fuzz
