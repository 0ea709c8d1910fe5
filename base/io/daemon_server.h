// SPDX-License-Identifier: Apache-2.0
// The unit's side of daemon_unit.h: runs one daemon for whoever connects, as its own user, with
// files that it has looked at itself. Who asks chooses no program, no option of its command line
// and no path.
#pragma once

#include "base/io/daemon_unit.h"
#include "base/result.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::io {

/// What a unit runs.
struct ServedDaemon {
  std::string name;  ///< for messages: "dnsmasq"
  Command command;   ///< started in the folder
  /// Refuses a file that the daemon must not read, or does not know. Errors: InvalidInput
  std::function<Result<void>(const std::string& name, const std::string& text)> check;
  std::vector<std::string> needed;   ///< names of files without which it is not started
  std::vector<std::string> first;    ///< written only where they are not there yet
  std::vector<std::string> removed;  ///< before each start: what an earlier process has left
  /// It ends with the connection that has started it. Otherwise it stays until it is stopped, or
  /// its unit is.
  bool ends_with_asker = true;
};

struct DaemonServerOptions {
  std::filesystem::path folder;  ///< the daemon's own
  std::optional<uid_t> asker;    ///< who may ask, besides the socket's mode; nullopt: anybody
  std::chrono::milliseconds idle{30'000};  ///< without connection and daemon, it ends after so long
  std::chrono::milliseconds grace{2'000};  ///< between SIGTERM and SIGKILL
};

/// Answers on the listening descriptor until it has been idle. What the daemon says goes to
/// standard error. Errors: Internal (the descriptor is no listening socket)
Result<void> serveDaemon(int listening, const ServedDaemon& daemon,
                         const DaemonServerOptions& options);

}  // namespace muster::io
