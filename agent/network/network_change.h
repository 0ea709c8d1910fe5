// SPDX-License-Identifier: Apache-2.0
// A change of a running node's network that takes itself back: what lay there before is kept with a
// script that brings it back, and both are on the disk before the first new file. Whoever renames
// the mark of the pending change first decides: the agent that has reached its controller, or the
// script, which a timer of systemd starts, and a unit before the network at the next start of the
// machine. So nothing depends on the agent, or on this program, being there. docs/adr/0306
#pragma once

#include "base/result.h"
#include "wire/node_network.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

/// Below the root: what was before, the script, the marks.
inline constexpr const char* kNetworkChange = "var/lib/muster/network-change";
/// "/bin/sh" of this brings the network back, with "now" as its argument; with "boot" only files.
inline constexpr const char* kNetworkBack = "var/lib/muster/network-change/back";
/// Brings the files back before the network starts; below the root, and its name.
inline constexpr const char* kNetworkBackUnit = "etc/systemd/system/muster-network-back.service";

/// Bonds and VLANs of `from` that are not the same in `to`, what lies on others first:
/// systemd-networkd makes such links, and neither changes nor removes them.
std::vector<std::string> linksToDelete(const wire::NodeNetwork& from, const wire::NodeNetwork& to);

/// The names of all links of both, once each.
std::vector<std::string> linksOf(const wire::NodeNetwork& a, const wire::NodeNetwork& b);

/// What the node was given. Errors: NotFound, InvalidInput
Result<wire::NodeNetwork> givenNetwork(const std::filesystem::path& root);
/// Empty: files and declaration are as the node was given them; else the first that is not.
std::string changedNetworkFile(const std::filesystem::path& root, const wire::NodeNetwork& given);

/// Keeps what is there, writes script and unit, and marks the change as pending; no file of the
/// network is touched. Errors: Conflict (another change is pending), Internal
Result<void> beginNetworkChange(const std::filesystem::path& root,
                                const std::optional<wire::NodeNetwork>& now,
                                const wire::NodeNetwork& next);
/// Files and declaration. Errors: Internal
Result<void> putNetwork(const std::filesystem::path& root, const wire::NodeNetwork& next);
/// Begun, and neither confirmed nor taken back to the end.
bool isNetworkChangePending(const std::filesystem::path& root);
/// From here on nothing takes it back. Errors: Conflict (it is being taken back, or was)
Result<void> confirmNetworkChange(const std::filesystem::path& root);

}  // namespace muster::agent
