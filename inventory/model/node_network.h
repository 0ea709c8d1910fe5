// SPDX-License-Identifier: Apache-2.0
// The network of installed nodes, as a profile declares it: which NICs there are, which of them are
// bonded, which VLANs are on them, and on which networks they have addresses. The words are
// netplan's.
//
// With a node's own part (its addresses, MACs and switch ports) it becomes what the agent renders
// (wire/node_network.h). The provisioning address is never declared: the NIC that boots has it, or
// the bond over that NIC.
#pragma once

#include "base/ids.h"
#include "base/ip_network.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "inventory/model/section.h"
#include "wire/node_network.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

using wire::BondHash;
using wire::BondMode;
using wire::LacpRate;

/// How a NIC is found: "provisioning" (the one that boots), "pci:0000:18:00.0" (its place), "mac"
/// (the node's `nics` says it).
struct NicMatch {
  enum class By { Provisioning, Pci, Mac } by = By::Mac;
  std::string pci;

  static Result<NicMatch> parse(std::string_view text);
  std::string str() const;
  friend bool operator==(const NicMatch&, const NicMatch&) = default;
};

/// "default", or a network.
struct RouteTarget {
  std::optional<IpNetwork> network;  ///< nullopt: default, of the gateway's family

  static Result<RouteTarget> parse(std::string_view text);
  std::string str() const;
  friend bool operator==(const RouteTarget&, const RouteTarget&) = default;
};

struct DeclaredRoute {
  RouteTarget to;
  IpAddress via;
  int metric = 0;  ///< 0: the system's own
  friend bool operator==(const DeclaredRoute&, const DeclaredRoute&) = default;
};

/// What every kind of link may have.
struct DeclaredLink {
  std::string name;                    ///< the interface's name on the node
  std::optional<int> mtu;              ///< nullopt: its networks' or its parent's
  std::vector<std::string> addresses;  ///< names of networks
  Parts<DeclaredRoute> routes;
};

struct DeclaredEthernet : DeclaredLink {
  NicMatch match;
};

struct DeclaredBond : DeclaredLink {
  std::vector<std::string> interfaces;
  BondMode mode = BondMode::Lacp;
  LacpRate lacp_rate = LacpRate::Fast;
  BondHash hash = BondHash::Layer34;
  int mii_ms = 100;
  int min_links = 0;
  std::string primary;
  bool switch_fallback = false;  ///< the switch forwards on a port of the bond that does not speak
                                 ///< LACP (or is alone) yet: a machine that boots from it is heard
};

struct DeclaredVlan : DeclaredLink {
  int id = 0;
  std::string link;
};

struct NodeNetworkSpec {
  Parts<DeclaredEthernet> ethernets;  ///< ordered by name, as the others
  Parts<DeclaredBond> bonds;
  Parts<DeclaredVlan> vlans;
  std::string default_route = "provisioning";  ///< the network whose gateways it leads to
  std::vector<std::string> search;             ///< DNS domains

  /// The Ethernet that matches "provisioning"; null: none.
  const DeclaredEthernet* provisioning() const;
  const DeclaredBond* bondOf(std::string_view ethernet) const;
  /// Every link, Ethernets first, VLANs last.
  std::vector<const DeclaredLink*> links() const;
  const DeclaredLink* find(std::string_view name) const;
  /// Which link has the provisioning address; empty without such an Ethernet.
  std::string provisioningLink() const;
};

/// What a node says of its own network: columns of its table.
struct NodeLinks {
  std::map<std::string, Mac> nics;                          ///< Ethernet → MAC
  std::map<std::string, std::vector<IpAddress>> addresses;  ///< network → addresses, instead of its
                                                            ///< pool's; at most one a family
  struct Port {
    std::string switch_name, port;
    friend bool operator==(const Port&, const Port&) = default;
  };
  std::map<std::string, Port> ports;  ///< Ethernet → where it is cabled, as LLDP names both
  friend bool operator==(const NodeLinks&, const NodeLinks&) = default;
};

/// "data0=52:54:00:20:01:01 data1=…". Errors: InvalidInput
Result<std::map<std::string, Mac>> parseNics(std::string_view text);
/// "storage=10.30.0.7 storage=fd00:30::7". Errors: InvalidInput
Result<std::map<std::string, std::vector<IpAddress>>> parseNodeAddresses(std::string_view text);
/// "data0=leaf1:swp7". Errors: InvalidInput
Result<std::map<std::string, NodeLinks::Port>> parsePorts(std::string_view text);
std::string str(const std::map<std::string, Mac>& nics);
std::string str(const std::map<std::string, std::vector<IpAddress>>& addresses);
std::string str(const std::map<std::string, NodeLinks::Port>& ports);

/// How far from a pool's base the node is (networks.h). Errors: InvalidInput, saying why it has no
/// place
Result<std::uint64_t> placeInPool(const AddressPool& pool, const Network& provisioning,
                                  const Node& node);

struct HostAddress {
  IpAddress address;
  int prefix_bits = 0;
  std::string str() const;
};
/// The addresses of a node on a network, with the network's prefix; at most one a family.
/// Errors: InvalidInput (none is declared, it is outside or another's), saying what would help
Result<std::vector<HostAddress>> addressesOn(const Network& network, const Network& provisioning,
                                             const Node& node);

/// Everything resolved. `problems` gets what is wrong, a text each, with what would help after a
/// "; "; then the result is of no use. Pure, and deterministic.
wire::NodeNetwork resolveNodeNetwork(const Parts<Network>& networks, const NodeNetworkSpec& spec,
                                     const Node& node, std::vector<std::string>* problems);

/// Of a node of a loaded cluster; nullopt: its profile declares none.
std::optional<wire::NodeNetwork> nodeNetworkOf(const Cluster& cluster, const Node& node);

}  // namespace muster::inventory
