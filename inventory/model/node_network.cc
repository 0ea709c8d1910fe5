// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/node_network.h"

#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/node.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster::inventory {

namespace {

constexpr std::string_view kPciPrefix = "pci:", kProvisioning = "provisioning", kMacWord = "mac",
                           kDefault = "default";

/// "0000:18:00.0"; a bus has 32 devices.
bool isPciAddress(std::string_view text) {
  constexpr std::string_view kShape = "xxxx:xx:bx.o";
  const auto length = kShape.size();
  if (text.size() != length) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], wanted = kShape[i];
    const bool binary = c == '0' || c == '1';
    const bool octal = c >= '0' && c <= '7',
               hex = octal || c == '8' || c == '9' || (c >= 'a' && c <= 'f');
    if (!(wanted == 'x' ? hex : wanted == 'o' ? octal : wanted == 'b' ? binary : c == wanted))
      return false;
  }
  return true;
}

std::unexpected<Error> wrong(std::string text) {
  return fail(ErrorCode::InvalidInput, std::move(text));
}

/// NAME=VALUE, divided by blanks. Errors: InvalidInput
Result<std::vector<std::pair<std::string, std::string>>> pairs(std::string_view text,
                                                               std::string_view form) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!text.empty()) {
    const auto blank = text.find(' ');
    const auto one = text.substr(0, blank);
    text = blank == std::string_view::npos ? std::string_view() : text.substr(blank + 1);
    if (one.empty()) continue;
    const auto equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == one.size())
      return wrong(fmt::format("\"{}\" is not NAME=…; write {}", one, form));
    out.emplace_back(one.substr(0, equals), one.substr(equals + 1));
  }
  return out;
}

template <class Map, class Print>
std::string joined(const Map& map, Print print) {
  std::string out;
  for (const auto& [name, value] : map)
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, print(value));
  return out;
}

const Network* networkNamed(const Parts<Network>& networks, std::string_view name) {
  const auto found = std::find_if(networks.begin(), networks.end(),
                                  [&](const Network& network) { return network.name == name; });
  return found == networks.end() ? nullptr : &*found;
}

/// Whose address it is, if not a node's; empty: free.
std::string takenBy(const Network& network, const IpAddress& address) {
  const bool v4 = address.isV4();
  const auto own = v4 ? IpNetwork(network.cidr) : network.cidr6.value_or(IpNetwork());
  if (own.isReserved(address)) return "the network's own or broadcast address";
  if (v4 ? network.gateway == address.v4() : network.gateway6 == address)
    return "the gateway's address";
  if (v4 && network.name == kProvisioning && isController(network, address.v4()))
    return "the controller's address";
  if (v4 && network.dhcp_range && network.dhcp_range->first <= address.v4() &&
      address.v4() <= network.dhcp_range->second)
    return "inside the DHCP range";
  return {};
}

/// An address that is outside, or another's. Empty: it is good.
std::string misplaced(const Network& network, const IpAddress& address) {
  if (!address.isV4() && !network.cidr6)
    return fmt::format("the network {} has no IPv6; add cidr6 to it", network.name);
  const auto own = address.isV4() ? IpNetwork(network.cidr) : *network.cidr6;
  if (!own.contains(address))
    return fmt::format("the address {} is outside {} of network {}; give it one of that network",
                       address.str(), own.str(), network.name);
  if (const auto taken = takenBy(network, address); !taken.empty())
    return fmt::format("the address {} on network {} is {}; give it another one", address.str(),
                       network.name, taken);
  return {};
}

int prefixOf(const Network& network, const IpAddress& address) {
  return address.isV4() ? network.cidr.prefix_bits : network.cidr6->prefix_bits;
}

}  // namespace

Result<NicMatch> NicMatch::parse(std::string_view text) {
  if (text == kProvisioning) return NicMatch{By::Provisioning, {}};
  if (text == kMacWord) return NicMatch{By::Mac, {}};
  if (text.starts_with(kPciPrefix) && isPciAddress(text.substr(kPciPrefix.size())))
    return NicMatch{By::Pci, std::string(text.substr(kPciPrefix.size()))};
  return wrong(
      fmt::format("\"{}\" finds no NIC; write provisioning (the NIC that boots), "
                  "pci:0000:18:00.0 (its place) or mac (the node's nics say it)",
                  text));
}

std::string NicMatch::str() const {
  if (by == By::Pci) return std::string(kPciPrefix) + pci;
  return std::string(by == By::Provisioning ? kProvisioning : kMacWord);
}

Result<RouteTarget> RouteTarget::parse(std::string_view text) {
  if (text == kDefault) return RouteTarget{};
  TRY(network, IpNetwork::parse(text));
  return RouteTarget{network};
}

std::string RouteTarget::str() const { return network ? network->str() : std::string(kDefault); }

const DeclaredEthernet* NodeNetworkSpec::provisioning() const {
  const auto found =
      std::find_if(ethernets.begin(), ethernets.end(), [](const DeclaredEthernet& ethernet) {
        return ethernet.match.by == NicMatch::By::Provisioning;
      });
  return found == ethernets.end() ? nullptr : &*found;
}

const DeclaredBond* NodeNetworkSpec::bondOf(std::string_view ethernet) const {
  for (const auto& bond : bonds)
    if (std::find(bond.interfaces.begin(), bond.interfaces.end(), ethernet) !=
        bond.interfaces.end())
      return &bond;
  return nullptr;
}

std::vector<const DeclaredLink*> NodeNetworkSpec::links() const {
  std::vector<const DeclaredLink*> out;
  for (const auto& ethernet : ethernets) out.push_back(&ethernet);
  for (const auto& bond : bonds) out.push_back(&bond);
  for (const auto& vlan : vlans) out.push_back(&vlan);
  return out;
}

const DeclaredLink* NodeNetworkSpec::find(std::string_view name) const {
  for (const auto* link : links())
    if (link->name == name) return link;
  return nullptr;
}

std::string NodeNetworkSpec::provisioningLink() const {
  const auto* nic = provisioning();
  if (!nic) return {};
  const auto* bond = bondOf(nic->name);
  return bond ? bond->name : nic->name;
}

Result<std::map<std::string, Mac>> parseNics(std::string_view text) {
  std::map<std::string, Mac> out;
  TRY(entries, pairs(text, "data0=52:54:00:20:01:01, several divided by blanks"));
  for (const auto& [name, value] : entries) {
    TRY(mac, Mac::parse(value));
    if (!out.emplace(name, mac).second) return wrong(fmt::format("{} is named twice", name));
  }
  return out;
}

Result<std::map<std::string, std::vector<IpAddress>>> parseNodeAddresses(std::string_view text) {
  std::map<std::string, std::vector<IpAddress>> out;
  TRY(entries, pairs(text, "storage=10.30.0.7, several divided by blanks"));
  for (const auto& [name, value] : entries) {
    TRY(address, IpAddress::parse(value));
    auto& list = out[name];
    if (std::any_of(list.begin(), list.end(),
                    [&](const IpAddress& other) { return other.family() == address.family(); }))
      return wrong(fmt::format("{} has two addresses of one family; keep one", name));
    list.push_back(address);
    std::sort(list.begin(), list.end());
  }
  return out;
}

Result<std::map<std::string, NodeLinks::Port>> parsePorts(std::string_view text) {
  constexpr std::string_view kShape = "data0=leaf1:swp7, several divided by blanks";
  std::map<std::string, NodeLinks::Port> out;
  TRY(entries, pairs(text, kShape));
  for (const auto& [name, value] : entries) {
    const auto colon = value.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == value.size())
      return wrong(fmt::format("\"{}\" is no SWITCH:PORT; write {}", value, kShape));
    if (!out.emplace(name, NodeLinks::Port{value.substr(0, colon), value.substr(colon + 1)}).second)
      return wrong(fmt::format("{} is named twice", name));
  }
  return out;
}

std::string str(const std::map<std::string, Mac>& nics) {
  return joined(nics, [](const Mac& mac) { return mac.str(); });
}

std::string str(const std::map<std::string, std::vector<IpAddress>>& addresses) {
  std::string out;
  for (const auto& [name, list] : addresses)
    for (const auto& address : list)
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, address.str());
  return out;
}

std::string str(const std::map<std::string, NodeLinks::Port>& ports) {
  return joined(ports, [](const NodeLinks::Port& port) {
    return fmt::format("{}:{}", port.switch_name, port.port);
  });
}

std::string HostAddress::str() const { return fmt::format("{}/{}", address.str(), prefix_bits); }

Result<std::uint64_t> placeInPool(const AddressPool& pool, const Network& provisioning,
                                  const Node& node) {
  if (pool.by == AddressPool::By::Address) {
    const auto start = provisioning.cidr.network.value();
    if (node.address.value() < start)
      return wrong(fmt::format(
          "its address {} lies before the provisioning network {}, so it has no place in a pool by "
          "address; write by: name, or its addresses in the node's own",
          node.address.str(), provisioning.cidr.str()));
    return node.address.value() - start;
  }
  const auto& name = node.name.str();
  const auto digits = name.find_last_not_of("0123456789");
  const auto begin = digits == std::string::npos ? 0 : digits + 1;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), number);
  if (begin == name.size() || error != std::errc() || number > 0xffff'ffffu)
    return wrong(
        "its name has no number at its end, so it has no place in a pool by name; write "
        "by: address, or its addresses in the node's own");
  return number;
}

Result<std::vector<HostAddress>> addressesOn(const Network& network, const Network& provisioning,
                                             const Node& node) {
  const bool boots_here = network.name == kProvisioning;
  std::vector<HostAddress> out;
  if (boots_here)
    out.push_back({IpAddress(node.address), addressPlan(network, node.address).prefix_bits});
  std::vector<IpAddress> own;
  if (node.links)
    if (const auto said = node.links->addresses.find(network.name);
        said != node.links->addresses.end())
      own = said->second;
  const auto add = [&](const IpAddress& address) -> Result<void> {
    if (auto why = misplaced(network, address); !why.empty()) return wrong(std::move(why));
    out.push_back({address, prefixOf(network, address)});
    return {};
  };
  for (const auto family : {IpFamily::V4, IpFamily::V6}) {
    if (boots_here && family == IpFamily::V4) continue;
    // Parts of the network behind routers have no IPv6 of their own yet.
    if (boots_here && subnetOf(network, node.address)) continue;
    const auto said = std::find_if(own.begin(), own.end(), [&](const IpAddress& address) {
      return address.family() == family;
    });
    if (said != own.end()) {
      TRY_OK(add(*said));
      continue;
    }
    const auto base = !network.pool            ? std::nullopt
                      : family == IpFamily::V4 ? network.pool->base
                                               : network.pool->base6;
    if (!base) continue;
    TRY(place, placeInPool(*network.pool, provisioning, node));
    auto address = base->plus(place);
    if (!address) return std::unexpected(std::move(address).error());
    TRY_OK(add(*address));
  }
  if (out.empty())
    return wrong(
        fmt::format("it has no address on network {0}; add pool: {{base: …}} to that network, or "
                    "addresses: \"{0}=…\" to the node",
                    network.name));
  return out;
}

namespace {

/// Makes one node's links, and notes every problem.
class Resolver {
 public:
  Resolver(const Parts<Network>& networks, const NodeNetworkSpec& spec, const Node& node,
           std::vector<std::string>* problems)
      : networks_(networks), spec_(spec), node_(node), problems_(problems) {
    provisioning_ = networkNamed(networks, kProvisioning);
  }

  wire::NodeNetwork run() {
    if (!provisioning_) return {};
    for (const auto& ethernet : spec_.ethernets) addEthernet(ethernet);
    for (const auto& bond : spec_.bonds) addBond(bond);
    for (const auto& vlan : spec_.vlans) {
      auto& link = add(vlan, wire::LinkKind::Vlan);
      link.parent = vlan.link;
      link.vlan_id = vlan.id;
    }
    out_.search = spec_.search;
    unknownNames();
    ownGateways();
    addPath();
    return std::move(out_);
  }

 private:
  void addEthernet(const DeclaredEthernet& ethernet) {
    auto& link = add(ethernet, wire::LinkKind::Ethernet);
    switch (ethernet.match.by) {
      case NicMatch::By::Provisioning:
        link.mac = node_.mac.str();
        link.switch_name = node_.switch_name;
        link.switch_port = node_.switch_port;
        break;
      case NicMatch::By::Pci:
        link.pci = ethernet.match.pci;
        break;
      case NicMatch::By::Mac: {
        const bool said = node_.links && node_.links->nics.contains(ethernet.name);
        if (said) link.mac = node_.links->nics.at(ethernet.name).str();
        if (!said)
          problem(
              fmt::format("nothing says the MAC of {0}; add nics: \"{0}=…\" to the node, or "
                          "match: pci:… to {0}",
                          ethernet.name));
        break;
      }
    }
    if (!node_.links) return;
    if (const auto port = node_.links->ports.find(ethernet.name);
        port != node_.links->ports.end()) {
      if (ethernet.match.by == NicMatch::By::Provisioning && !node_.switch_name.empty())
        problem(
            fmt::format("the switch port of {} is said by switch and port and by ports; keep "
                        "one of them",
                        ethernet.name));
      link.switch_name = port->second.switch_name;
      link.switch_port = port->second.port;
    }
  }

  void addBond(const DeclaredBond& bond) {
    auto& link = add(bond, wire::LinkKind::Bond);
    link.members = bond.interfaces;
    link.bond = {bond.mode, bond.lacp_rate, bond.hash, bond.mii_ms, bond.min_links, bond.primary};
    if (!wire::hashes(bond.mode)) link.bond.hash = wire::BondParameters().hash;
    if (bond.mode != BondMode::Lacp) link.bond.lacp_rate = wire::BondParameters().lacp_rate;
    // The address that its switch and its DHCP server know it by stays the same as when it boots.
    if (const auto* nic = spec_.provisioning(); nic && spec_.bondOf(nic->name) == &bond) {
      link.mac = node_.mac.str();
      if (wire::hasPrimary(bond.mode) && bond.primary.empty()) link.bond.primary = nic->name;
    }
  }

  wire::NetworkLink& add(const DeclaredLink& declared, wire::LinkKind kind) {
    auto& link = out_.links.emplace_back();
    link.name = declared.name;
    link.kind = kind;
    auto names = declared.addresses;
    if (declared.name == spec_.provisioningLink()) {
      std::erase(names, kProvisioning);
      names.insert(names.begin(), std::string(kProvisioning));
    }
    for (const auto& name : names) addAddresses(name, link);
    if (declared.mtu) link.mtu = *declared.mtu;
    for (const auto& route : declared.routes)
      link.routes.push_back({route.to.network   ? route.to.network->str()
                             : route.via.isV4() ? "0.0.0.0/0"
                                                : "::/0",
                             route.via.str(), route.metric});
    return link;
  }

  void addAddresses(const std::string& name, wire::NetworkLink& link) {
    const auto* network = networkNamed(networks_, name);
    if (!network) return;  // said already, where it is written
    auto addresses = addressesOn(*network, *provisioning_, node_);
    if (!addresses) return problem(addresses.error().text());
    bool v6 = false;
    for (const auto& address : *addresses) {
      link.addresses.push_back(address.str());
      v6 = v6 || !address.address.isV4();
    }
    if (network->mtu) link.mtu = std::max(link.mtu, *network->mtu);
    const bool boots_here = network == provisioning_;
    const auto plan = boots_here ? addressPlan(*network, node_.address)
                                 : AddressPlan{0, network->gateway, network->dns, {}};
    for (const auto& server : plan.dns)
      if (std::find(link.dns.begin(), link.dns.end(), server.str()) == link.dns.end())
        link.dns.push_back(server.str());
    if (name == spec_.default_route) {
      if (plan.gateway) link.routes.push_back({"0.0.0.0/0", plan.gateway->str(), 0});
      if (network->gateway6 && v6) link.routes.push_back({"::/0", network->gateway6->str(), 0});
    } else if (boots_here && plan.gateway && subnetOf(*network, node_.address)) {
      // The controller is behind the router of this part of the network.
      link.routes.push_back({network->cidr.str(), plan.gateway->str(), 0});
    }
  }

  void addPath() {
    auto& path = out_.provisioning;
    path.mac = node_.mac.str();
    path.link = spec_.provisioningLink();
    const auto plan = addressPlan(*provisioning_, node_.address);
    path.address = fmt::format("{}/{}", node_.address.str(), plan.prefix_bits);
    if (plan.gateway)
      path.routes.push_back(
          {spec_.default_route == kProvisioning ? "0.0.0.0/0" : provisioning_->cidr.str(),
           plan.gateway->str(), 0});
    if (spec_.default_route != kProvisioning && !subnetOf(*provisioning_, node_.address))
      path.routes.clear();  // the controller is on the same network
    for (const auto controller : controllersOf(*provisioning_))
      path.controllers.push_back(controller.str());
  }

  /// The kernel takes no route by an address that the node itself has.
  void ownGateways() {
    const auto has = [this](std::string_view gateway) {
      return std::any_of(out_.links.begin(), out_.links.end(), [&](const wire::NetworkLink& link) {
        return std::any_of(link.addresses.begin(), link.addresses.end(),
                           [&](std::string_view address) {
                             return address.substr(0, address.find('/')) == gateway;
                           });
      });
    };
    for (const auto& link : out_.links)
      for (const auto& route : link.routes)
        if (has(route.via))
          problem(
              fmt::format("it has itself the address {}, by which {} routes to {}; give the node "
                          "another one by addresses, or correct via",
                          route.via, link.name, route.to));
  }

  /// What the node says of things that its profile does not have.
  void unknownNames() {
    if (!node_.links) return;
    const auto ethernet = [&](const std::string& name) {
      return std::any_of(spec_.ethernets.begin(), spec_.ethernets.end(),
                         [&](const DeclaredEthernet& each) { return each.name == name; });
    };
    for (const auto& [name, mac] : node_.links->nics) {
      const auto found =
          std::find_if(spec_.ethernets.begin(), spec_.ethernets.end(),
                       [&](const DeclaredEthernet& each) { return each.name == name; });
      if (found == spec_.ethernets.end())
        problem(
            fmt::format("nics names {}, which is no Ethernet of its profile; remove it, or add "
                        "it to network.ethernets",
                        name));
      else if (found->match.by != NicMatch::By::Mac)
        problem(
            fmt::format("nics names {}, which its profile finds by match: {}; remove one of "
                        "them",
                        name, found->match.str()));
    }
    for (const auto& [name, port] : node_.links->ports)
      if (!ethernet(name))
        problem(
            fmt::format("ports names {}, which is no Ethernet of its profile; remove it, or "
                        "add it to network.ethernets",
                        name));
    for (const auto& [name, addresses] : node_.links->addresses) {
      if (name == kProvisioning) {
        if (std::any_of(addresses.begin(), addresses.end(),
                        [](const IpAddress& address) { return address.isV4(); }))
          problem(
              "addresses names provisioning, where its IPv4 address is that of the key "
              "address; remove it");
        continue;
      }
      const auto links = spec_.links();
      if (std::none_of(links.begin(), links.end(), [&](const DeclaredLink* link) {
            return std::find(link->addresses.begin(), link->addresses.end(), name) !=
                   link->addresses.end();
          }))
        problem(
            fmt::format("addresses names the network {}, on which no link of its profile is; "
                        "remove it, or add it to the addresses of a link",
                        name));
    }
  }

  void problem(std::string text) {
    if (problems_) problems_->push_back(std::move(text));
  }

  const Parts<Network>& networks_;
  const NodeNetworkSpec& spec_;
  const Node& node_;
  std::vector<std::string>* problems_;
  const Network* provisioning_ = nullptr;
  wire::NodeNetwork out_;
};

}  // namespace

wire::NodeNetwork resolveNodeNetwork(const Parts<Network>& networks, const NodeNetworkSpec& spec,
                                     const Node& node, std::vector<std::string>* problems) {
  return Resolver(networks, spec, node, problems).run();
}

std::optional<wire::NodeNetwork> nodeNetworkOf(const Cluster& cluster, const Node& node) {
  const auto& profile = cluster.profileOf(node);
  if (!profile.network) return std::nullopt;
  return resolveNodeNetwork(cluster.networks, *profile.network, node, nullptr);
}

}  // namespace muster::inventory
