// SPDX-License-Identifier: Apache-2.0
// The run that installs firmware again whose installation has failed for good. It is an apply of
// the nodes on which something had failed before the run was asked for: while it runs, what says so
// (firmware-failed.COMPONENT, and what an abandoned update has left) is lifted, and where it rests
// or ends before a node has begun, that is put back. What fails in the run itself is never lifted
// by it, so nothing is flashed a third time. docs/adr/0373. Internal to app/.
#pragma once

#include "app/runs/run_kind.h"
#include "app/validation/gate_plan.h"

namespace muster::app {

const RunKindRules& firmwareRetryRules();

/// What says of these nodes that an installation has failed, seen before `before`: to be left out
/// of the facts that a retry is planned from.
GatesByNode failuresSeenBefore(const lifecycle::FactSet& facts, const std::vector<NodeName>& nodes,
                               WallTime before);

}  // namespace muster::app
