// SPDX-License-Identifier: Apache-2.0
// The configuration files of a node's network, for what its system has: systemd-networkd, netplan
// or NetworkManager. Pure, but for the look at which of them is there.
//
// Interfaces get their declared names by systemd's .link files, which udev reads whatever
// configures the network; everything else then goes by name. Beside it lies a fallback for the NIC
// that boots: whatever was not renamed or joined as declared still gets the provisioning address.
#pragma once

#include "wire/node_network.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// What the node was given, as JSON; below the root.
inline constexpr const char* kNetworkDeclaration = "etc/muster/network.json";

enum class NetworkStack { Networkd, Netplan, NetworkManager };
std::string_view toString(NetworkStack stack);  ///< "netplan"

/// netplan where it is installed, else systemd-networkd, else NetworkManager; a system with none of
/// them gets systemd-networkd's.
NetworkStack networkStackOf(const std::filesystem::path& root);

struct NetworkFile {
  std::string path;  ///< below the root
  std::string content;
  unsigned mode = 0644;

  friend bool operator==(const NetworkFile&, const NetworkFile&) = default;
};

/// Everything that the stack needs, ordered by path.
std::vector<NetworkFile> networkFiles(const wire::NodeNetwork& network, NetworkStack stack);

std::vector<NetworkFile> networkdFiles(const wire::NodeNetwork& network);
std::vector<NetworkFile> netplanFiles(const wire::NodeNetwork& network);
std::vector<NetworkFile> keyfiles(const wire::NodeNetwork& network);
/// The .link files, which each of them needs.
std::vector<NetworkFile> linkFiles(const wire::NodeNetwork& network);

/// The files below `root` that muster has written for any of the stacks, ordered.
std::vector<std::string> ownNetworkFiles(const std::filesystem::path& root);

/// SHA-256 over paths and contents, the first 16 hex digits.
std::string digestOf(const std::vector<NetworkFile>& files);

/// Writes them, and takes away what an earlier declaration left. Other configurations of netplan
/// are put aside, for all of its files count. Errors: Internal
Result<void> writeNetworkFiles(const std::filesystem::path& root, const wire::NodeNetwork& network,
                               NetworkStack stack);

}  // namespace muster::agent
