// SPDX-License-Identifier: Apache-2.0
// Networks that nodes are on. The one named "provisioning" is where they boot: it has one part at
// the controller, and perhaps others behind routers that relay DHCP.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "base/ip_network.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::inventory {

enum class DhcpMode { Authoritative, Proxy, Relay, None };

/// A server near some nodes that has copies of the controller's boot files. It gets no secret: boot
/// scripts and tokens come from the controller.
struct BootServer {
  std::string name;
  std::optional<Ipv4> tftp;  ///< has undionly.kpxe and ipxe.efi
  std::string
      http;  ///< base URL below which /ramos is the controller's; empty: the controller itself
  std::vector<std::string> racks;  ///< whose nodes use it; subnets name theirs
  friend bool operator==(const BootServer&, const BootServer&) = default;
};

/// A part of the provisioning network that the controller reaches through a router. Nodes are in it
/// by their address.
struct Subnet {
  std::string name;
  Cidr cidr;
  Ipv4 gateway;
  std::optional<std::pair<Ipv4, Ipv4>> dhcp_range;
  std::vector<Ipv4> dns;                   ///< empty: the network's
  std::vector<std::string> image_mirrors;  ///< empty: the network's
  std::string boot_server;                 ///< name; empty: the controller
  std::vector<std::string>
      racks;  ///< whose nodes must have their addresses here; empty: nothing is said
  friend bool operator==(const Subnet&, const Subnet&) = default;
};

/// Where nodes get their addresses on a network: the pool's first one and the node's place in it,
/// which does not move when another node leaves.
struct AddressPool {
  enum class By { Address, Name };
  std::optional<IpAddress> base, base6;
  By by = By::Address;  ///< Address: as far from the start of the provisioning network as the
                        ///< node's own address there. Name: the number at the end of its name
  friend bool operator==(const AddressPool&, const AddressPool&) = default;
};

struct Network {
  std::string name;
  Cidr cidr;
  DhcpMode dhcp_mode = DhcpMode::Authoritative;
  std::optional<std::pair<Ipv4, Ipv4>> dhcp_range;
  Ipv4 controller;  ///< where muster listens; default: first host of the network; of several the
                    ///< first, or this host's own (putOnHost)
  std::vector<Ipv4>
      controllers;  ///< of several hosts, one of which serves; empty: `controller` alone
  std::optional<Ipv4> gateway;
  std::vector<Ipv4> dns;
  std::optional<IpNetwork> cidr6;     ///< IPv6 of installed nodes; they are provisioned over IPv4
  std::optional<IpAddress> gateway6;  ///< in it, or link-local
  std::optional<int> mtu;           ///< bytes, of nodes' interfaces on it; nullopt: nothing is said
  std::optional<AddressPool> pool;  ///< nullopt: nodes say their addresses themselves
  std::vector<std::string>
      image_mirrors;                     ///< base URLs of other servers of the controller's /images
  bool image_peers = false;              ///< nodes that are imaged share the image with each other
  std::vector<BootServer> boot_servers;  ///< ordered by name
  std::vector<Subnet> subnets;           ///< ordered by name; they do not overlap
};

/// The subnet that holds the address; null: the controller's own part of the network, or none at
/// all.
const Subnet* subnetOf(const Network& network, Ipv4 address);
/// Whether a node with this address can boot here.
bool isProvisioned(const Network& network, Ipv4 address);
/// The addresses of all hosts that may serve, in the order of the inventory.
std::vector<Ipv4> controllersOf(const Network& network);
bool isController(const Network& network, Ipv4 address);
/// On a host that has one of these addresses: that one is where muster listens. Answers whether it
/// is one of the controllers.
bool putOnHost(Network& network, const std::vector<Ipv4>& addresses_of_host);
/// "https://A:PORT,https://B:PORT": this host first. What agents are told.
std::string agentUrls(const Network& network, std::uint16_t port);
/// Who has the boot files for a node: the server of its rack, else of its subnet; null: the
/// controller.
const BootServer* bootServerOf(const Network& network, const std::string& rack, Ipv4 address);

/// What a node at this address must be told.
struct AddressPlan {
  int prefix_bits = 0;
  std::optional<Ipv4> gateway;
  std::vector<Ipv4> dns;
  std::vector<std::string> image_mirrors;
};
AddressPlan addressPlan(const Network& network, Ipv4 address);

}  // namespace muster::inventory
