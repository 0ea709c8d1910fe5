// SPDX-License-Identifier: Apache-2.0
// What a node says of NVLink beyond its own GPUs: IMEX, the domain.
#pragma once

#include "agent/tasks/tasks.h"

#include <string>
#include <string_view>

namespace muster::agent {

/// Of `nvidia-imex-ctl -N -j`: "UP nodes=18", or what is wrong: "DEGRADED: 10.0.0.7 UNAVAILABLE".
/// Pure. Errors: Corrupt
Result<std::string> imexState(std::string_view json);
/// The same, asked; "no channel: …" where jobs could not use it.
Task<std::string> imexProbe(TaskTools tools);
/// "UUID.CLIQUE", the same on all nodes of an NVLink domain; else "none: …" with the reason.
Task<std::string> nvlinkDomainProbe(TaskTools tools);

}  // namespace muster::agent
