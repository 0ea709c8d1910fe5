// SPDX-License-Identifier: Apache-2.0
// Isolation under unfriendly conditions, on a physical model of a fabric (physical_fabric.h).
#pragma once

#include "bench/bench.h"

namespace muster::bench {

enum class Size { Pairs1024, Groups256, Groups1024 };

/// Faults that come and go, nodes that die during the run, fleets of which a third or more is slow,
/// congestion, drifting hosts and leaves.
void benchWild(Report& report, Size size, int trials);
/// Of these, only the fabrics without a fault: congestion, drifting hosts and leaves; or one row of
/// them: struck, traffic, hosts, leaves, tenth.
void benchCongestion(Report& report, Size size, int trials, std::string_view row = {});
/// Faults that come and go by the round, with pairs only and with collectives.
void benchWholeRounds(Report& report, int trials);
/// Congestion and drift with collectives on 1,024 nodes.
void benchLarge(Report& report, int trials);

}  // namespace muster::bench
