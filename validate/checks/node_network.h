// SPDX-License-Identifier: Apache-2.0
// A node's network as the kernel has it, compared with what the node was given. Pure.
//
// The kernel is asked by `ip -j -d`: its JSON is the same for every configuration system, and says
// of bonds what no configuration file knows – whether the switch speaks LACP, which members joined.
#pragma once

#include "base/result.h"
#include "wire/node_network.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct KernelAddress {
  std::string text;  ///< with prefix
  bool duplicate = false, tentative = false;
};

struct KernelLink {
  std::string name, mac, permanent_mac, pci, kind, master, parent;
  bool up = false, carrier = false;
  int mtu = 0;
  std::vector<KernelAddress> addresses;  ///< of global scope
  int vlan_id = 0;
  // Of a bond.
  std::string mode, hash, lacp_rate, primary, partner_mac;
  int mii_ms = 0, min_links = 0, aggregator = 0;
  // Of a member.
  std::string mii_status;
  int member_aggregator = 0;
};

struct KernelRoute {
  std::string to;  ///< with prefix; "0.0.0.0/0" of a default route
  std::string via, link;
  int metric = 0;
};

struct KernelNetwork {
  std::map<std::string, KernelLink> links;
  std::vector<KernelRoute> routes;  ///< of the main table, both families
};

/// `ip -j -d addr show`, `ip -j route show`, `ip -j -6 route show`.
/// Errors: Corrupt (no such answer)
Result<KernelNetwork> parseKernelNetwork(std::string_view addresses, std::string_view routes,
                                         std::string_view routes6);

/// What is not as declared, each with what to look at; empty: all of it is.
std::vector<std::string> networkProblems(const wire::NodeNetwork& declared,
                                         const KernelNetwork& kernel);

}  // namespace muster::validate
