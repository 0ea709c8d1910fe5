// SPDX-License-Identifier: Apache-2.0
// A site's settings on a running system: files written whole, users made, daemons told, and all of
// it read back from those who act by it. What muster wrote is in a record, so that what is declared
// no more goes, and a second run or one after kill -9 finds its way. docs/adr/0305
#pragma once

#include "agent/tasks/tasks.h"

#include <string>

namespace muster::agent {

/// Puts what lies in etc/muster/host.d/DRIVER.json into force; without that file, takes back what
/// an earlier one asked for. Users that are declared no more are locked, never deleted. Errors:
/// InvalidInput (the file, a system account), NotFound (a package that is missing), Internal (a
/// tool's own words; sshd and sudo keep the files that they had)
Async<void> applyHostSettings(TaskTools tools, std::string driver);

/// "as-declared", "drift:WHAT" of the first thing that is not; empty where nothing is declared.
/// Asks who acts by it: chronyc or timedatectl, the trust store, sshd -T, apt-config, the user
/// database, the kernel.
Task<std::string> hostProbe(TaskTools tools, std::string driver);

}  // namespace muster::agent
