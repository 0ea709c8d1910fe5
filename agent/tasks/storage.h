// SPDX-License-Identifier: Apache-2.0
// Storage on the node: mounted as declared, and fast enough by direct I/O.
#pragma once

#include "agent/tasks/tasks.h"

namespace muster::agent {

struct MountEntry {
  std::string source, at, type;
  std::vector<std::string> options;
};
/// Of /proc/self/mounts; \040 and its like are turned back.
std::vector<MountEntry> parseMounts(std::string_view text);

struct WantedMount {
  std::string source, at, types;  ///< types separated by spaces
  std::vector<std::string> options;
};
/// What is wrong with what is mounted there; empty: nothing. A declared "vers=4.2" must be shown;
/// "_netdev" and its like never are. Of options that are not declared only "ro" is a problem.
std::string mountProblem(const std::vector<MountEntry>& mounts, const WantedMount& wanted);

struct Speed {
  double write_mb_s = 0, read_mb_s = 0;  ///< MB are 10^6 bytes
};
/// One stream of direct I/O to a file of its own in `folder`, at most `bytes` and `limit` each way;
/// the file is gone afterwards. Blocking. Errors: Unavailable (full, read-only, no direct I/O)
Result<Speed> measureSpeed(const std::filesystem::path& folder, std::uint64_t bytes,
                           std::chrono::milliseconds limit);

/// Probe storage.NAME: the value that was reached while what is mounted is still that; "wrong: …"
/// else.
std::string storageProbe(const std::filesystem::path& root, const std::string& name);

}  // namespace muster::agent
