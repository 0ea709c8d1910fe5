// SPDX-License-Identifier: Apache-2.0
// What an executor of runs works with, of a controller. Internal to app/.
#pragma once

#include "app/controller/controller.h"
#include "app/runs/run_executor.h"

namespace muster::app {

class MonitorListener;

/// With what rollouts have changed, and the changes of those that wait to begin.
Result<std::unique_ptr<lifecycle::EffectiveCluster>> servedCluster(const Options& options);

/// All are borrowed.
RunWork runWork(Controller& controller, lifecycle::RunStore& runs,
                lifecycle::EffectiveCluster& live, MonitorListener& listener,
                const Options& options, const std::optional<lab::LabHandle>& lab);

}  // namespace muster::app
