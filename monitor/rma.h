// SPDX-License-Identifier: Apache-2.0
// The RMA bundle: all that is known of a node in one archive, for the vendor and for whoever
// repairs it. Every file is named in a manifest with its SHA-256, so that what arrives can be
// checked.
#pragma once

#include "bmc/bmc.h"
#include "lifecycle/store/store.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::monitor {

inline constexpr std::size_t kRmaEvents = 2'000;  ///< the newest of the node
inline constexpr std::size_t kRmaActions = 1'000;
inline constexpr std::size_t kRmaLogEntries = 1'000;     ///< of the BMC's event log
inline constexpr std::size_t kRmaConsoleLines = 20'000;  ///< of a boot
inline constexpr std::size_t kRmaLogBytes =
    4u << 20;  ///< of muster.log, its end; only lines that name the node

struct RmaFile {
  std::string name, content;
};

/// What is known now. What cannot be read (a BMC that does not answer) is a file that says why,
/// never a gap. Errors: NotFound (no such node), those of the store
Async<std::vector<RmaFile>> gatherRma(const inventory::Cluster& cluster, lifecycle::Store& store,
                                      bmc::BmcFleet& bmcs, std::filesystem::path state,
                                      NodeName node, WallTime now);

/// "manifest.json" over the files, in the order of their names.
RmaFile manifestOf(const std::vector<RmaFile>& files, const NodeName& node, WallTime now);

/// Whether the archive may be written there, before anything is gathered. Errors: InvalidInput
/// (another ending), Conflict (it exists)
Result<void> checkRmaFile(const std::filesystem::path& out);
/// One archive with the folder rma-NODE, compressed as its name says (.tar.zst, .tar.gz). Equal
/// files give equal bytes. Errors: those of checkRmaFile and of tar
Result<void> writeRma(std::vector<RmaFile> files, const NodeName& node, WallTime now,
                      const std::filesystem::path& out);

}  // namespace muster::monitor
