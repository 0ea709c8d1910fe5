// SPDX-License-Identifier: Apache-2.0
// The gate after a wave: a pure function of what became of its nodes.
#pragma once

#include "lifecycle/rollout/record.h"

namespace muster::lifecycle {

/// Whether so many failures are more than the policy lets a wave of this size have.
bool tooManyFailed(std::size_t failed, std::size_t of, const inventory::RolloutPolicy& policy);

/// A reason that is the change's own: what on_failure speaks of.
void blameChange(GateReport& gate, std::string reason);

/// Evaluates the wave by its own nodes' failures, and by the speed of all nodes that have changed
/// so far: more nodes, more certainty.
GateReport evaluateWave(const RolloutRecord& record, std::size_t wave);

/// The gate in a few lines of words.
std::string textOf(const GateReport& gate);

}  // namespace muster::lifecycle
