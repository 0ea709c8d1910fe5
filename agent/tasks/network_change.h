// SPDX-License-Identifier: Apache-2.0
// NodeService "network": the network of a running node is changed, and stays only if the agent
// reaches its controller by it. docs/adr/0306
#pragma once

#include "agent/tasks/tasks.h"
#include "wire/task_params.h"

namespace muster::agent {

inline constexpr std::string_view kNetworkService = "network";
/// The declaration among the files of the task.
inline constexpr const char* kNetworkFileName = "network.json";
/// From the first new file until the old ones come back.
inline constexpr std::chrono::seconds kNetworkConfirmLimit{60};

/// Result {service, value, started}. A change that an agent before this one left pending is taken
/// back first.
/// Errors: InvalidInput (the declaration; a system without systemd-networkd; names of NICs that
/// only a restart brings), Unavailable (the controller was not reached, the network before is back)
Async<nlohmann::json> changeNetwork(TaskTools tools, wire::NodeServiceParams params,
                                    TaskContextPtr context);

/// Digest of what the node was given, "changed:FILE", "pending"; empty: it was given none.
std::string networkProbe(const std::filesystem::path& root);

}  // namespace muster::agent
