// SPDX-License-Identifier: Apache-2.0
// What a node says of its RoCE interfaces: how they mark and queue, their GIDs, what they are
// cabled to, and whether large packets get through.
#pragma once

#include "agent/tasks/tasks.h"

#include <string>

namespace muster::agent {

/// {"mlx5_0": {"interface", "address", "mtu", "app", "pfc", "traffic_class", "gids": {"3": {"gid",
/// "type"}}, "neighbour": {"switch", "port", "frame_bytes"}}, …}: the kernel's, dcb's and lldpd's
/// own answers. What a device cannot say is not in it.
Task<std::string> roceProbe(TaskTools tools);
/// `way`: "DEVICE.ADDRESS". Whether packets as large as the interface sends them reach the address
/// undivided: "passes 9000"; "blocked 9000": small ones do; "silent: …": none does.
Task<std::string> rocePathProbe(TaskTools tools, std::string way);

}  // namespace muster::agent
