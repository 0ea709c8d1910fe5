// SPDX-License-Identifier: Apache-2.0
// dnsmasq and OpenSM in units of their own (docs/adr/0360): when they are asked, and what they are.
#pragma once

#include "base/io/daemon_unit.h"

#include <optional>
#include <string_view>

namespace muster::app {

/// Who runs dnsmasq for this process; nullopt: it does so itself, as root, in the twin's network,
/// and where there is no unit.
std::optional<io::DaemonUnit> dnsmasqUnit(bool in_twin);
/// The same for OpenSM.
std::optional<io::DaemonUnit> opensmUnit(bool in_twin);

/// The unit itself, started by systemd for its socket: `name` is dnsmasq or opensm.
/// Errors: NotFound (no such daemon, no user muster), Denied (root, or not started by its socket)
Result<void> serveDaemon(std::string_view name);

}  // namespace muster::app
