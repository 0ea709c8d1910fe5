// What a node says of NVLink beyond its own GPUs (IMEX, the domain), and of how its RoCE interfaces mark and queue.
#pragma once

#include "agent/tasks/tasks.h"

#include <string>
#include <string_view>

namespace muster::agent {

/// Of `nvidia-imex-ctl -N -j`: "UP nodes=18", or what is wrong: "DEGRADED: 10.0.0.7 UNAVAILABLE". Pure. Errors: Corrupt
Result<std::string> imexState(std::string_view json);
/// The same, asked; "no channel: …" where jobs could not use it.
Task<std::string> imexProbe(TaskTools tools);
/// "UUID.CLIQUE", the same on all nodes of an NVLink domain; else "none: …" with the reason.
Task<std::string> nvlinkDomainProbe(TaskTools tools);
/// {"mlx5_0": {"interface", "address", "mtu", "app", "pfc", "traffic_class", "neighbour": {"switch", "port", "frame_bytes"}}, …}: dcb's and
/// lldpd's own answers. What a device cannot say is not in it.
Task<std::string> roceProbe(TaskTools tools);
/// `way`: "DEVICE.ADDRESS". Whether packets as large as the interface sends them reach the address undivided: "passes 9000"; "blocked 9000":
/// small ones do; "silent: …": none does.
Task<std::string> rocePathProbe(TaskTools tools, std::string way);

}  // namespace muster::agent
