// SPDX-License-Identifier: Apache-2.0
// Rollouts with the real phases on a simulated rack: what one life of muster does of them.
#pragma once

#include "tests/crash/simulated_rack.h"

#include "lifecycle/rollout/record.h"

namespace muster::test {

/// The change files' texts; `policy`: what stands under `rollout:`.
std::string toDriver45();
/// A new baseline with another BIOS; its file lies in the rack's folder.
std::string toBios150(SimulatedRack& rack, const std::string& policy = "");

/// Begins this change, or goes on with the rollout of the store if `change` is empty. Ok: it has
/// reached the end of its way.
LifeEnd rollOut(SimulatedRack& rack, lifecycle::Store& store, const std::string& change,
                lifecycle::RolloutDirection direction = lifecycle::RolloutDirection::Forward,
                Death death = {});

}  // namespace muster::test
