// SPDX-License-Identifier: Apache-2.0
// RAID by a site's own command, for controllers that no Redfish manages.
//
// `show` prints one JSON object: {"controllers": [{"id", "name"?, "levels"?: ["RAID1", …],
// "drives": [{"id", "serial"?, "wwn"?, "size_bytes", "unusable"?}],
// "volumes": [{"id", "name"?, "level", "drives": [id, …], "size_bytes"?, "wwn"?}]}]}.
// `create` and `remove` return when the work is done.
#pragma once

#include "base/io/process.h"
#include "bmc/bmc.h"

#include <memory>
#include <string>
#include <vector>

namespace muster::bmc {

/// Program and arguments, without a shell. In `create` {controller}, {level}, {drives} (ids with
/// commas) and {name} stand for the order's, in `remove` {controller} and {volume}.
struct RaidCommands {
  std::vector<std::string> show, create, remove;
};

/// The controllers of what `show` prints. Errors: Unavailable (no such object: nothing is
/// concluded from it)
Result<std::vector<RaidController>> raidControllersIn(const std::string& printed);

/// `processes` outlives it.
std::unique_ptr<Bmc> withRaidTool(std::unique_ptr<Bmc> bmc, RaidCommands commands,
                                  io::ProcessRunner& processes);

}  // namespace muster::bmc
