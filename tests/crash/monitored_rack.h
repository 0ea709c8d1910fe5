// SPDX-License-Identifier: Apache-2.0
// muster monitor with the real phases on a simulated rack.
#pragma once

#include "tests/crash/simulated_rack.h"

namespace muster::test {

/// One process of the monitor: it lives until `until` has held for some minutes, and fails if that
/// is not so within hours.
LifeEnd keep(SimulatedRack& rack, lifecycle::Store& store, Death death,
             std::function<bool()> until);

}  // namespace muster::test
