// SPDX-License-Identifier: Apache-2.0
// The network of one installed node, with every address resolved: the controller makes it from the
// inventory (inventory/model/node_network.h), the agent renders it for the node's own system
// (agent/network/), applies it and compares the kernel with it.
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

enum class LinkKind { Ethernet, Bond, Vlan };
constexpr std::string_view toString(LinkKind kind) {
  constexpr std::array<std::string_view, 3> kWords{"ethernet", "bond", "vlan"};
  return kWords[static_cast<std::size_t>(kind)];
}

/// In the order of the kernel's numbers (BOND_MODE_ROUNDROBIN is 0).
enum class BondMode {
  BalanceRr,
  ActiveBackup,
  BalanceXor,
  Broadcast,
  Lacp,
  BalanceTlb,
  BalanceAlb
};
/// As the kernel prints it.
constexpr std::string_view toString(BondMode mode) {
  constexpr std::array<std::string_view, 7> kWords{"balance-rr", "active-backup", "balance-xor",
                                                   "broadcast",  "802.3ad",       "balance-tlb",
                                                   "balance-alb"};
  return kWords[static_cast<std::size_t>(mode)];
}
enum class LacpRate { Slow, Fast };
constexpr std::string_view toString(LacpRate rate) {
  return rate == LacpRate::Fast ? "fast" : "slow";
}
enum class BondHash { Layer2, Layer23, Layer34, Encap23, Encap34 };
constexpr std::string_view toString(BondHash hash) {
  constexpr std::array<std::string_view, 5> kWords{"layer2", "layer2+3", "layer3+4", "encap2+3",
                                                   "encap3+4"};
  return kWords[static_cast<std::size_t>(hash)];
}

/// Modes that spread one bond's frames over ports that the switch must have joined too.
constexpr bool needsSwitch(BondMode mode) {
  return mode == BondMode::BalanceRr || mode == BondMode::BalanceXor ||
         mode == BondMode::Broadcast || mode == BondMode::Lacp;
}
constexpr bool hashes(BondMode mode) {
  return mode == BondMode::BalanceXor || mode == BondMode::Lacp || mode == BondMode::BalanceTlb;
}
constexpr bool hasPrimary(BondMode mode) {
  return mode == BondMode::ActiveBackup || mode == BondMode::BalanceTlb ||
         mode == BondMode::BalanceAlb;
}

struct NetworkRoute {
  std::string to;   ///< "10.40.0.0/16", "::/0"
  std::string via;  ///< address of the same family
  int metric = 0;   ///< 0: the system's own

  friend bool operator==(const NetworkRoute&, const NetworkRoute&) = default;
};

/// A bond's own properties; of other links as in a new one.
struct BondParameters {
  BondMode mode = BondMode::ActiveBackup;
  LacpRate lacp_rate = LacpRate::Fast;  ///< of Lacp
  BondHash hash = BondHash::Layer34;    ///< where hashes(mode)
  int mii_ms = 100;                     ///< how often carriers are looked at
  int min_links = 0;                    ///< fewer with a carrier: the bond has none
  std::string primary;                  ///< where hasPrimary(mode); empty: none is preferred

  friend bool operator==(const BondParameters&, const BondParameters&) = default;
};

struct NetworkLink {
  std::string name;  ///< the interface's name on the node
  LinkKind kind = LinkKind::Ethernet;
  std::string mac;  ///< of an Ethernet: finds it; of a bond: its own, empty: its first member's
  std::string pci;  ///< of an Ethernet that is found by its place instead: "0000:18:00.0"
  std::vector<std::string> members;  ///< of a bond
  BondParameters bond;
  std::string parent;                  ///< of a VLAN
  int vlan_id = 0;                     ///< of a VLAN, 1 to 4094
  int mtu = 0;                         ///< bytes; 0: the system's own
  std::vector<std::string> addresses;  ///< with prefix: "10.30.0.7/16", "fd00:30::7/64"
  std::vector<NetworkRoute> routes;
  std::vector<std::string> dns;
  std::string switch_name, switch_port;  ///< of an Ethernet, as LLDP names both; empty: not said

  friend bool operator==(const NetworkLink&, const NetworkLink&) = default;
};

/// What the node must keep whatever else is wrong: the way to its controller.
struct ProvisioningPath {
  std::string mac;                   ///< of the NIC that boots
  std::string link;                  ///< which link has the address: that NIC, or the bond over it
  std::string address;               ///< "10.20.1.1/16"
  std::vector<NetworkRoute> routes;  ///< those that it needs to reach its controllers
  std::vector<std::string> controllers;  ///< addresses, one of which must answer

  friend bool operator==(const ProvisioningPath&, const ProvisioningPath&) = default;
};

struct NodeNetwork {
  ProvisioningPath provisioning;
  std::vector<NetworkLink> links;   ///< Ethernets, bonds, VLANs: each after what it is made of
  std::vector<std::string> search;  ///< DNS domains

  const NetworkLink* find(std::string_view name) const;
  /// The bond that an Ethernet is in; null: none.
  const NetworkLink* bondOf(std::string_view member) const;
  friend bool operator==(const NodeNetwork&, const NodeNetwork&) = default;
};

/// At most 15 characters, as the kernel takes them, and none that a configuration file takes for
/// its own.
bool isInterfaceName(std::string_view name);

std::string toJson(const NodeNetwork& network);
/// What is unknown is skipped; what does not look right is refused, for it becomes configuration
/// files. Errors: InvalidInput naming the member
Result<NodeNetwork> parseNodeNetwork(std::string_view text);
/// What a field alone does not show: each link is found in one way, is there once and after what it
/// is made of. Errors: InvalidInput
Result<void> checkNodeNetwork(const NodeNetwork& network);
/// SHA-256 over all of it, the first 16 hex digits: what a node was given.
std::string digestOf(const NodeNetwork& network);

}  // namespace muster::wire
