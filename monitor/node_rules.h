// SPDX-License-Identifier: Apache-2.0
// The action table as agents get it, so that a node can say for itself whether it may start a job
// (wire/health_rules.h).
#pragma once

#include "inventory/model/monitor.h"
#include "wire/health_rules.h"

namespace muster::monitor {

/// Which symptoms take a node out of work: those that ask for more than to be watched. The same
/// as `assess` says of a symptom that is seen for the first time. Pure.
wire::HealthRules nodeRules(const inventory::MonitorPolicy& policy, bool expects_gpus);

}  // namespace muster::monitor
