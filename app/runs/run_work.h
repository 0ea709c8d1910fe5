// SPDX-License-Identifier: Apache-2.0
// What an executor of runs works with, of a controller. Internal to app/.
#pragma once

#include "app/controller/controller.h"
#include "app/runs/run_executor.h"

namespace muster::app {

class MonitorListener;

/// All are borrowed.
RunWork runWork(Controller& controller, lifecycle::RunStore& runs,
                const inventory::Cluster& cluster, MonitorListener& listener);

}  // namespace muster::app
