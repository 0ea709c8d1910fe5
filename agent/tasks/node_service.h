// SPDX-License-Identifier: Apache-2.0
// The fabric's own services on a node: a standby subnet manager, IMEX, Fabric Manager's settings,
// how RoCE is marked. The controller renders their files; here is what may be written where, and
// when a service has to start anew.
//
// A service reads its files when it starts, so files alone prove nothing. What it was started with
// is noted after the start and taken away before the next change: whatever is killed when, a
// service that may run with old files is started again.
#pragma once

#include "agent/tasks/tasks.h"

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace muster::agent {

/// When the file has changed.
enum class OnChange {
  Restart,
  Reload,
  Seed
};  ///< Seed: written only where it is not there; the service goes on with it itself
struct ServiceFile {
  std::string_view name, path;  ///< below the root
  OnChange on = OnChange::Restart;
  unsigned mode = 0644;
};
struct ServiceRow {
  std::string_view name;  ///< "opensm"
  std::string_view unit;
  std::string_view program;  ///< one of these must be there, separated by blanks
  std::string_view help;     ///< where it comes from
  std::span<const ServiceFile> files;
  std::string_view settings;     ///< a file of KEY=value lines of which some are ours; empty: none
  std::string_view rivals = {};  ///< units that do the same by other files, separated by blanks:
                                 ///< stopped and masked; "name@*": stopped
  bool runs_once = false;  ///< it sets something and ends: that it was started says nothing of now,
                           ///< so it is always started anew
};
const ServiceRow* findService(std::string_view name);

/// `text` with each KEY=… set; what is commented out stays so. Pure.
std::string withSettings(std::string_view text, const std::map<std::string, std::string>& settings);
/// The value of KEY= in such a text; the last one counts.
std::optional<std::string> settingIn(std::string_view text, std::string_view key);

/// params {service, value, files: {NAME: text}, settings: {KEY: value}}; result {service, value,
/// started}. `value` is what the probe tells from then on. Errors: InvalidInput, NotFound (the
/// program is not installed), Internal (it does not start: its last words), Conflict (a rival
/// cannot be stopped)
Async<nlohmann::json> setNodeService(TaskTools tools, nlohmann::json params,
                                     TaskContextPtr context);
/// `value` while the files are as they were set and the service is active; else "changed: FILE",
/// "not active: …", "rival: UNIT"; empty: never set.
Task<std::string> nodeServiceProbe(TaskTools tools, std::string name);

}  // namespace muster::agent
