// SPDX-License-Identifier: Apache-2.0
// The kernel's log of a node that has become unhealthy, kept while the node can still be asked:
// after the repair nobody can.
#pragma once

#include "gateway/agent_gateway.h"
#include "lifecycle/store/store.h"

#include <string>

namespace muster::monitor {

/// Asks the node's agent for its kernel log, once for each boot and kind of symptom (`what`: a
/// fact's value), and keeps the last one in the store. Never waits: what was asked for is taken in
/// at a later call. Errors: those of the store
Result<void> storeKernelLog(gateway::AgentGateway& agents, lifecycle::Store& store,
                            const gateway::AgentState& state, const std::string& what,
                            WallTime now);

/// As text, with when and why it was kept. Errors: those of the store
Result<std::string> storedKernelLog(lifecycle::Store& store, const NodeName& node);

}  // namespace muster::monitor
