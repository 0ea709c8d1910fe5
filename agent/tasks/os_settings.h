// SPDX-License-Identifier: Apache-2.0
// A driver's settings on the node: files written whole, values put into force where the running
// system allows it, and what only a restart brings.
#pragma once

#include "agent/tasks/tasks.h"

namespace muster::agent {

/// An archive with its key. Both package managers' texts travel; the node takes the one that it
/// understands.
struct ArchiveFiles {
  std::string name, apt_source, dnf_source, key_base64;
};

struct OsSettings {
  std::string driver;                        ///< the files' names contain it
  std::map<std::string, std::string> files;  ///< below the root
  std::vector<ArchiveFiles> archives;
  std::vector<std::string> services, modules;
  std::string kernel;  ///< glob; its packages are held
  bool dkms = false;
};
/// Errors: InvalidInput (a file outside of what muster may write, a key that is none)
Result<OsSettings> parseSettings(const nlohmann::json& params, const std::string& driver);

/// Before packages: archives and keys. Files that an earlier declaration left are removed.
Result<void> writeArchives(const TaskTools& tools, const OsSettings& settings);
/// After packages, before modules are loaded: files, sysctl, the kernel arguments' list, holds.
Async<void> applySettings(TaskTools tools, OsSettings settings);
/// Last: services need the modules.
Async<void> startServices(TaskTools tools, OsSettings settings);
inline constexpr std::chrono::minutes kRestartLimit{
    5};  ///< from the order until the machine takes this process away
/// Orders a restart of the machine, once in a boot whoever asks, and waits until it ends this
/// process: an attempt that ended before would be followed by one that finds the machine as it was.
/// `context` says so meanwhile. Errors: Corrupt (it was restarted for this very reason by this very
/// action already, and nothing has become better), Timeout (no restart came; it may be ordered
/// anew)
Async<void> restartFor(TaskTools tools, std::string driver, std::string reason,
                       TaskContextPtr context);
/// What runs is as wanted: the restart before has helped, and stands against no later one.
void forgetRestart(const std::filesystem::path& root, const std::string& driver);
/// Why only a restart helps; empty: it is not needed. Compares what is loaded with what is
/// installed.
Task<std::string> restartReason(TaskTools tools, OsSettings settings);

/// DIGEST of the driver's files as they are now, with ":restart" behind it while the running kernel
/// lacks something of them.
std::string settingsProbe(const std::filesystem::path& root, const std::string& driver);

}  // namespace muster::agent
