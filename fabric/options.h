// SPDX-License-Identifier: Apache-2.0
// FabricOptions: where the fabric's files lie, and how its tools are called.
#pragma once

#include "base/io/daemon_unit.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::fabric {

/// Tools and opensm attach to the controller's HCA on the fabric: SIM_HOST =
/// ibsimNodeId(controllerHca(…)) in the twin.
struct FabricOptions {
  std::filesystem::path run_folder;  ///< opensm.conf, root GUIDs, partitions.conf, logs, pid file
  std::vector<std::string> tool_prefix;  ///< put before each IB tool: {"ibsim-run"} in the twin
  std::map<std::string, std::string> tool_env;  ///< IBSIM_SOCKNAME, SIM_HOST in the twin
  std::string local_hca = {};  ///< that tools are told to look through (-C); empty: they choose
  std::vector<std::filesystem::path> other_folders =
      {};  ///< files of the controller's other subnet managers, which are no rivals
  std::string no_opensm = {};  ///< why this process can run none for the fabric; empty: it can
  std::chrono::seconds discovery_limit{
      60};  ///< for one ibnetdiscover: 16,384 HCAs take 10.5 s when nothing is lost
  /// Who runs OpenSM where this process does not: then its files are in the unit's folder, and what
  /// muster knows of it stays in run_folder.
  std::optional<io::DaemonUnit> opensm_unit = std::nullopt;
  const std::filesystem::path& opensmFolder() const {
    return opensm_unit ? opensm_unit->folder : run_folder;
  }
};

}  // namespace muster::fabric
