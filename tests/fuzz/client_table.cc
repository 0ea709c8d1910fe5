// SPDX-License-Identifier: Apache-2.0
// The table of the programs that hold what asks BMCs and plans firmware.
#include "tests/fuzz/targets.h"

namespace muster::fuzz {

std::vector<Target> allTargets() { return {redfishTarget(), pldmTarget(), baselineTarget()}; }

}  // namespace muster::fuzz
