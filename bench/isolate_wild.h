// SPDX-License-Identifier: Apache-2.0
// Isolation under unfriendly conditions, on a physical model of a fabric (physical_fabric.h).
#pragma once

#include "bench/bench.h"

namespace muster::bench {

/// Congestion, drifting hosts, faults that come and go, nodes that die during the run, and fleets
/// of which a third or more is slow; pairs only on 1,024 nodes, with collectives on 256 and 1,024.
void benchWild(Report& report, int trials);
/// The part of it whose faults come and go by the round.
void benchWholeRounds(Report& report, int trials);

}  // namespace muster::bench
