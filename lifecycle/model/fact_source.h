// SPDX-License-Identifier: Apache-2.0
// Who has observed a fact (Fact::source), where others than people ask for it.
#pragma once

#include "lifecycle/model/facet.h"

namespace muster::lifecycle {

/// Of what a node's agent has reported.
inline std::string agentSource(const Subject& node) { return "agent " + node.str(); }

}  // namespace muster::lifecycle
