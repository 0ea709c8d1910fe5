// SPDX-License-Identifier: Apache-2.0
// A daemon that a unit of systemd's runs for the service, which has no right to (docs/adr/0360):
// who asks for it. The unit's side is daemon_server.h.
//
// One line each way is one JSON object. Asked: {"start": {NAME: TEXT, …}} with the daemon's files,
// {"write": {NAME: TEXT, …}}, {"signal": "hup"}, {"stop": true}. Answered: {"pid": PID},
// {"done": true}, or {"error": CODE, "text": TEXT}; at any time {"ended": TEXT} to who started it.
#pragma once

#include "base/io/process.h"

#include <nlohmann/json_fwd.hpp>

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>

namespace muster::io {

/// What a daemon reads, by its name in the daemon's folder.
using DaemonFiles = std::map<std::string, std::string>;

/// Where to ask, and where the daemon's folder is, which who asks may read.
struct DaemonUnit {
  std::string name;  ///< of the units: "muster-dnsmasq"
  std::filesystem::path socket;
  std::filesystem::path folder;
  uid_t owner = 0;  ///< whose the socket must be: systemd's

  std::string journal() const { return "journalctl -u " + name + ".service"; }
};

/// One request and its answer. Errors: those of the unit, Unavailable (nobody listens, with what to
/// do; it ended), Timeout, Denied (somebody else's socket)
Result<nlohmann::json> askDaemonUnit(const DaemonUnit& unit, const nlohmann::json& request);

/// Starts the daemon; it runs until the Child is destroyed, or this process ends, however it does.
/// SIGHUP is the one signal that it can be sent. Errors: those of askDaemonUnit
Result<std::unique_ptr<Child>> startInUnit(const DaemonUnit& unit, const DaemonFiles& files);

/// Whether this process may bind ports below 1024 by itself.
bool mayBindLowPorts();

}  // namespace muster::io
