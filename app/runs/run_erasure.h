// SPDX-License-Identifier: Apache-2.0
// The erasure of a run: what the node is asked for, and only while the run may. Until its plan is
// agreed to nothing is written that any other plan could take for a wish; where the run ends or
// rests, what has not begun is taken back. However often it is begun, the node is told once: the
// request has one id, and the journal knows its task. Internal to app/.
#pragma once

#include "app/runs/run_kind.h"
#include "lifecycle/store/runs.h"
#include "lifecycle/store/store.h"

#include <functional>

namespace muster::app {

const RunKindRules& erasureRules();

/// Of whoever works on the site while nobody serves it: what runs have asked for before their
/// process was killed, and their nodes have not begun, is taken back, so that no other plan carries
/// it out, whatever was ordered of the run meanwhile. The run asks again when it goes on. `forget`
/// is told each node of which something was taken back.
Result<void> restErasures(lifecycle::RunStore& runs, lifecycle::Store& store, WallTime now,
                          const std::function<void(const NodeName&)>& forget);

}  // namespace muster::app
