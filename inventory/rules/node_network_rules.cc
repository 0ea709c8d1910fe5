// SPDX-License-Identifier: Apache-2.0
// Rules of nodes' own networks: what a profile's links are made of, that the way to the controller
// stays, and that no address, MAC or switch port is given twice.
#include "base/ip_network.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "inventory/model/special_networks.h"
#include "inventory/parse/hostlist.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::inventory {

namespace {

constexpr std::string_view kProvisioning = "provisioning";
constexpr std::size_t kShownNodes = 120;
constexpr int kUsualMtu = 1500;

const Network* networkNamed(const Cluster& cluster, std::string_view name) {
  for (const Network& network : cluster.networks)
    if (network.name == name && network.cidr.prefix_bits > 0) return &network;
  return nullptr;
}

/// The item of a list of text, else the list.
const Value& item(const Value& list, std::string_view text) {
  for (const Value& each : list.items)
    if (each.text == text) return each;
  return list;
}
const Value& item(const Value&& list, std::string_view text) = delete;

/// Rules of one profile's links, each with its place.
class ProfileLinks {
 public:
  ProfileLinks(const Cluster& cluster, const Profile& profile, const Value& map, Reader& reader)
      : cluster_(cluster), profile_(profile), spec_(*profile.network), map_(map), reader_(reader) {}

  void run() {
    image();
    names();
    provisioningNic();
    for (const auto& bond : spec_.bonds) members(bond);
    for (const auto& vlan : spec_.vlans) vlanOn(vlan);
    for (const auto* link : spec_.links()) {
      mtuOf(*link);
      addressesOf(*link);
      routesOf(*link);
    }
    defaultRoutes();
    for (const auto* link : spec_.links()) routesIntoOwnNetworks(*link);
  }

 private:
  const Value& at(std::string_view section, std::string_view name) const {
    const Value* entries = map_.find(section);
    const Value* entry = entries ? entries->find(name) : nullptr;
    return entry ? *entry : map_;
  }
  const Value& of(const DeclaredLink& link) const {
    for (std::string_view section : {"ethernets", "bonds", "vlans"})
      if (const Value* entries = map_.find(section))
        if (const Value* entry = entries->find(link.name)) return *entry;
    return map_;
  }
  const Value& of(const DeclaredLink& link, std::string_view key) const {
    return place(of(link), key);
  }
  void image() {
    const auto found = cluster_.images.find(profile_.image);
    if (found != cluster_.images.end() && found->second.kind == ImageKind::Live)
      reader_.error(map_,
                    fmt::format("image {} is live: its interfaces are up before the system starts, "
                                "so they are neither renamed nor bonded",
                                profile_.image),
                    "remove network, or choose an image of another kind");
  }

  void names() {
    std::set<std::string_view> seen;
    for (const auto* link : spec_.links())
      if (!seen.insert(link->name).second)
        reader_.error(of(*link), fmt::format("two links are named {}", link->name),
                      "rename one of them");
    std::map<std::string_view, std::string_view> places;
    for (const auto& ethernet : spec_.ethernets)
      if (ethernet.match.by == NicMatch::By::Pci)
        if (auto [first, fresh] = places.emplace(ethernet.match.pci, ethernet.name); !fresh)
          reader_.error(of(ethernet, "match"),
                        fmt::format("{} and {} are the same NIC", first->second, ethernet.name),
                        "give one of them another place");
  }

  void provisioningNic() {
    std::vector<const DeclaredEthernet*> found;
    for (const auto& ethernet : spec_.ethernets)
      if (ethernet.match.by == NicMatch::By::Provisioning) found.push_back(&ethernet);
    if (found.empty())
      reader_.error(place(map_, "ethernets"),
                    "no Ethernet is the NIC that boots: the node would lose its controller",
                    "add boot: {match: provisioning}");
    for (std::size_t i = 1; i < found.size(); ++i)
      reader_.error(
          of(*found[i], "match"),
          fmt::format("{} and {} both match provisioning", found[0]->name, found[i]->name),
          "a node boots from one NIC; match the other by pci:… or mac");
    if (found.empty()) return;
    const auto* bond = spec_.bondOf(found[0]->name);
    if (!bond || !wire::needsSwitch(bond->mode) || bond->switch_fallback) return;
    reader_.error(
        item(of(*bond, "interfaces"), found[0]->name),
        fmt::format(
            "{} boots the node and is in the bond {} of mode {}: firmware speaks no LACP, so "
            "the switch may drop what it sends and the node never boots again",
            found[0]->name, bond->name, toString(bond->mode)),
        "set LACP fallback on these switch ports and write switch_fallback: true, or write mode: "
        "active-backup");
  }

  void members(const DeclaredBond& bond) {
    const Value& list = of(bond, "interfaces");
    std::set<std::string_view> seen;
    for (const auto& name : bond.interfaces) {
      const Value& where = item(list, name);
      const auto* link = spec_.find(name);
      const bool ethernet =
          std::any_of(spec_.ethernets.begin(), spec_.ethernets.end(),
                      [&](const DeclaredEthernet& each) { return each.name == name; });
      if (!link || !ethernet) {
        reader_.error(
            where,
            fmt::format("{} is no Ethernet of this profile, so not a member of the bond {}", name,
                        bond.name),
            link ? "a bond is made of Ethernets alone" : suggestion(name));
        continue;
      }
      if (!seen.insert(name).second)
        reader_.error(where, fmt::format("{} is in the bond {} twice", name, bond.name),
                      "remove one");
      if (const auto* first = spec_.bondOf(name); first != &bond)
        reader_.error(where,
                      fmt::format("{} is in the bonds {} and {}", name, first->name, bond.name),
                      "an Ethernet is in one bond; remove it from the other");
      for (std::string_view key : {"addresses", "routes", "mtu"})
        if (const Value* value = of(*link).find(key))
          reader_.error(
              *value,
              fmt::format("{} is a member of the bond {}, which has the {}", name, bond.name, key),
              fmt::format("move it to {}", bond.name));
    }
  }

  void vlanOn(const DeclaredVlan& vlan) {
    const Value& where = of(vlan, "link");
    const auto* below = spec_.find(vlan.link);
    const bool on_vlan =
        std::any_of(spec_.vlans.begin(), spec_.vlans.end(),
                    [&](const DeclaredVlan& each) { return each.name == vlan.link; });
    if (!below)
      reader_.error(where, fmt::format("{} is no Ethernet or bond of this profile", vlan.link),
                    suggestion(vlan.link));
    else if (on_vlan)
      reader_.error(where, fmt::format("{} is a VLAN itself", vlan.link),
                    "put it on the Ethernet or bond below");
    else if (const auto* bond = spec_.bondOf(vlan.link))
      reader_.error(where, fmt::format("{} is a member of the bond {}", vlan.link, bond->name),
                    fmt::format("write link: {}", bond->name));
    for (const auto& other : spec_.vlans)
      if (other.name < vlan.name && other.link == vlan.link && other.id == vlan.id)
        reader_.error(of(vlan, "id"),
                      fmt::format("{} and {} are both VLAN {} on {}", other.name, vlan.name,
                                  vlan.id, vlan.link),
                      "give one of them another id");
  }

  /// What it will have: its own, else the largest of its networks.
  int mtu(const DeclaredLink& link) const {
    if (link.mtu) return *link.mtu;
    int out = 0;
    auto names = link.addresses;
    if (link.name == spec_.provisioningLink()) names.emplace_back(kProvisioning);
    for (const auto& name : names)
      if (const auto* network = networkNamed(cluster_, name); network && network->mtu)
        out = std::max(out, *network->mtu);
    return out == 0 ? kUsualMtu : out;
  }

  void mtuOf(const DeclaredLink& link) {
    const auto networks = networksOf(link);
    const bool v6 = std::any_of(networks.begin(), networks.end(),
                                [](const Network* network) { return network->cidr6.has_value(); });
    constexpr int kLeastIpv6 = 1280;
    if (v6 && mtu(link) < kLeastIpv6)
      reader_.error(of(link, "mtu"),
                    fmt::format("{} has IPv6 and an MTU of {}", link.name, mtu(link)),
                    "IPv6 needs 1280 bytes or more");
    mtusOfNetworks(link, networks);
    for (const auto& vlan : spec_.vlans) {
      if (&vlan != &link) continue;
      const auto* below = spec_.find(vlan.link);
      if (below && !spec_.bondOf(below->name) && mtu(vlan) > mtu(*below))
        reader_.error(of(vlan, vlan.mtu ? "mtu" : "addresses"),
                      fmt::format("the MTU {} of the VLAN {} is above the {} of {} below it",
                                  mtu(vlan), vlan.name, mtu(*below), below->name),
                      fmt::format("write mtu: {} for {} too", mtu(vlan), below->name));
    }
  }

  /// An interface has one MTU, and a packet as large as it must fit on each of its networks.
  void mtusOfNetworks(const DeclaredLink& link, const std::vector<const Network*>& networks) {
    const Network *least = nullptr, *most = nullptr;
    for (const auto* network : networks) {
      if (!network->mtu) continue;
      if (!least || *network->mtu < *least->mtu) least = network;
      if (!most || *network->mtu > *most->mtu) most = network;
    }
    if (!least) return;
    if (link.mtu && *link.mtu > *least->mtu)
      reader_.error(of(link, "mtu"),
                    fmt::format("the MTU {} of {} is above the {} of its network {}", *link.mtu,
                                link.name, *least->mtu, least->name),
                    "lower it, or raise the network's where all its switches carry it");
    else if (!link.mtu && *least->mtu != *most->mtu)
      reader_.error(of(link, "addresses"),
                    fmt::format("{} is on network {} with an MTU of {} and on {} with {}",
                                link.name, least->name, *least->mtu, most->name, *most->mtu),
                    fmt::format("write mtu: {} for it, or put the networks on VLANs of their own",
                                *least->mtu));
  }

  void addressesOf(const DeclaredLink& link) {
    const Value& list = of(link, "addresses");
    for (const auto& name : link.addresses) {
      if (name == kProvisioning && link.name != spec_.provisioningLink()) {
        reader_.error(item(list, name),
                      fmt::format("the provisioning address is on {}, not on {}",
                                  spec_.provisioningLink(), link.name),
                      "remove it here");
        continue;
      }
      if (auto [first, fresh] = on_.emplace(name, link.name); !fresh)
        reader_.error(item(list, name),
                      fmt::format("the node has its address on network {} on {} already", name,
                                  first->second),
                      "a node has one address on a network; remove one of them");
    }
  }

  /// The networks of a link, with the provisioning one where it is there.
  std::vector<const Network*> networksOf(const DeclaredLink& link) const {
    std::vector<const Network*> out;
    auto names = link.addresses;
    if (link.name == spec_.provisioningLink()) names.emplace_back(kProvisioning);
    for (const auto& name : names)
      if (const auto* network = networkNamed(cluster_, name)) out.push_back(network);
    return out;
  }

  void routesOf(const DeclaredLink& link) {
    const Value& list = of(link, "routes");
    std::set<std::pair<std::string, int>> seen;
    for (std::size_t i = 0; i < link.routes.size(); ++i) {
      const auto& route = link.routes[i];
      const Value& where = i < list.items.size() ? list.items[i] : list;
      if (route.to.network && route.to.network->family() != route.via.family()) {
        reader_.error(place(where, "via"),
                      fmt::format("the gateway {} is not of the family of {}", route.via.str(),
                                  route.to.str()),
                      "name a gateway of the same family");
        continue;
      }
      if (route.to.network && route.to.network->prefix_bits > 0) {
        if (const auto special = specialNetworkIn(*route.to.network); !special.empty())
          reader_.error(place(where, "to"),
                        fmt::format("the route to {} reaches into {}", route.to.str(), special),
                        "name a network of machines, or default");
        if (!seen.emplace(route.to.str(), route.metric).second)
          reader_.error(where,
                        fmt::format("the route to {} is there twice on {}: the kernel takes one",
                                    route.to.str(), link.name),
                        "remove one, or give one a metric");
      }
      wayToController(link, route, where);
      const auto networks = networksOf(link);
      const bool reached =
          std::any_of(networks.begin(), networks.end(), [&](const Network* network) {
            if (route.via.isV4())
              return network->cidr.contains(route.via.v4()) ||
                     (network->name == kProvisioning && isProvisioned(*network, route.via.v4()));
            return network->cidr6 &&
                   (route.via.isLinkLocal() || network->cidr6->contains(route.via));
          });
      if (!reached)
        reader_.error(
            place(where, "via"),
            fmt::format("the gateway {} is on no network of {}", route.via.str(), link.name),
            "move the route to the link with that network, or correct via");
      for (const auto* network : networks)
        if (route.via.isV4() && IpNetwork(network->cidr).isReserved(route.via))
          reader_.error(place(where, "via"),
                        fmt::format("the gateway {} is the own or broadcast address of network {}",
                                    route.via.str(), network->name),
                        "use the address of a router");
    }
  }

  /// The kernel reaches the machines of a network that the node is on without a gateway, by a route
  /// of the same width, which such a one would replace.
  void routesIntoOwnNetworks(const DeclaredLink& link) {
    const Value& list = of(link, "routes");
    for (std::size_t i = 0; i < link.routes.size(); ++i) {
      const auto& to = link.routes[i].to.network;
      if (!to) continue;
      for (const auto& [name, on] : on_) {
        const auto* network = networkNamed(cluster_, name);
        if (!network || (*to != IpNetwork(network->cidr) && to != network->cidr6)) continue;
        reader_.error(
            place(i < list.items.size() ? list.items[i] : list, "to"),
            fmt::format("the route to {} is to network {}, which {} is on", to->str(), name, on),
            "remove it: the machines there are reached without a gateway");
      }
    }
  }

  /// A route as narrow as the provisioning network, or narrower, wins over the NIC that boots.
  void wayToController(const DeclaredLink& link, const DeclaredRoute& route, const Value& where) {
    const auto* provisioning = networkNamed(cluster_, kProvisioning);
    if (!provisioning || !route.to.network || link.name == spec_.provisioningLink()) return;
    const IpNetwork own(provisioning->cidr);
    if (route.to.network->prefix_bits < own.prefix_bits || !own.overlaps(*route.to.network)) return;
    reader_.error(place(where, "to"),
                  fmt::format("the route to {} leads away from the provisioning network {}: the "
                              "node would lose its controller",
                              route.to.str(), own.str()),
                  "remove it, or route what is beyond that network only");
  }

  void defaultRoutes() {
    struct First {
      std::string from;
    };
    std::map<std::pair<IpFamily, int>, First> seen;
    const auto see = [&](IpFamily family, int metric, std::string from, const Value& where) {
      auto [first, fresh] = seen.emplace(std::pair(family, metric), First{from});
      if (fresh) return;
      reader_.error(where,
                    fmt::format("two default routes of the same metric: by {} and by {}",
                                first->second.from, from),
                    "keep one, give one a metric, or name the network in default_route");
    };
    const auto* network = networkNamed(cluster_, spec_.default_route);
    const bool there = spec_.default_route == kProvisioning || on_.contains(spec_.default_route);
    if (network && !there)
      reader_.error(place(map_, "default_route"),
                    fmt::format("no link has an address on network {}", spec_.default_route),
                    "add it to the addresses of a link, or name another network");
    if (network && map_.find("default_route") && !network->gateway && !network->gateway6 &&
        network->subnets.empty())
      reader_.error(place(map_, "default_route"),
                    fmt::format("the network {} has no gateway", spec_.default_route),
                    "add gateway to it, or name another network");
    if (network && (network->gateway || !network->subnets.empty()))
      see(IpFamily::V4, 0, "network " + network->name, place(map_, "default_route"));
    if (network && network->gateway6)
      see(IpFamily::V6, 0, "network " + network->name, place(map_, "default_route"));
    for (const auto* link : spec_.links())
      for (std::size_t i = 0; i < link->routes.size(); ++i) {
        const auto& route = link->routes[i];
        if (route.to.network && route.to.network->prefix_bits > 0) continue;
        const Value& list = of(*link, "routes");
        see(route.via.family(), route.metric, route.via.str(),
            i < list.items.size() ? list.items[i] : list);
      }
  }

  std::string suggestion(const std::string& name) const {
    std::vector<std::string_view> known;
    for (const auto* link : spec_.links()) known.push_back(link->name);
    return didYouMean(name, known);
  }

  const Cluster& cluster_;
  const Profile& profile_;
  const NodeNetworkSpec& spec_;
  const Value& map_;
  Reader& reader_;
  std::map<std::string, std::string> on_;  ///< network → link
};

/// What is given to nodes: each thing once.
class GivenToNodes {
 public:
  GivenToNodes(const Cluster& cluster, const Value& root, Reader& reader)
      : cluster_(cluster), reader_(reader) {
    for (const Network& network : cluster.networks) servers(network, root);
  }

  /// Of a node with a network of its own, or without one.
  void add(const DeclaredNode& declared) {
    const Node& node = declared.node;
    const auto profile = cluster_.profiles.find(node.profile);
    if (profile == cluster_.profiles.end()) return;
    if (!profile->second.network) {
      if (node.links)
        problems_
            ["its profile declares no network, so nics, addresses and ports mean nothing; add "
             "network to the profile, or remove them"]
                .push_back(&node);
      once(macs_, node.mac.str(), "MAC", node);
      once(addresses_, node.address.str(), "address", node);
      return;
    }
    std::vector<std::string> problems;
    const auto network =
        resolveNodeNetwork(cluster_.networks, *profile->second.network, node, &problems);
    for (auto& problem : problems) problems_[std::move(problem)].push_back(&node);
    for (const auto& link : network.links) {
      if (link.kind == wire::LinkKind::Ethernet && !link.mac.empty())
        once(macs_, link.mac, "MAC", node);
      if (!link.switch_name.empty())
        once(ports_, fmt::format("{} {}", link.switch_name, link.switch_port), "switch port", node);
      for (const auto& written : link.addresses) {
        const auto address = written.substr(0, written.find('/'));
        once(addresses_, address, "address", node);
        if (const auto server = servers_.find(address); server != servers_.end())
          error(node,
                fmt::format("the address {} of {} is that of {}", address, node.name.str(),
                            server->second),
                "give the node another one by addresses, or move the pool's base");
      }
    }
    bmc(node);
  }

  void report() {
    for (const auto& [problem, nodes] : problems_) {
      std::vector<std::string> names;
      for (const auto* node : nodes) names.push_back(node->name.str());
      const auto semicolon = problem.rfind("; ");
      error(*nodes.front(),
            fmt::format("{}: {}", shorten(foldHostlist(names), kShownNodes),
                        problem.substr(0, semicolon)),
            semicolon == std::string::npos ? "" : problem.substr(semicolon + 2));
    }
    for (const auto& [address, node] : bmcs_)
      if (const auto used = addresses_.find(address);
          used != addresses_.end() && used->second->address.str() != address)
        error(*node,
              fmt::format("the BMC address {} of {} is also an address of {}", address,
                          node->name.str(), used->second->name.str()),
              "one of them is wrong");
  }

 private:
  using Givers = std::map<std::string, const Node*>;

  /// Whose addresses no node may have. The controller's own address is there on every network, and
  /// means something where muster listens or where somebody wrote it.
  void servers(const Network& network, const Value& root) {
    const Value& map = place(place(root, "networks"), network.name);
    const auto add = [&](const Ipv4& address, std::string_view what) {
      servers_.emplace(address.str(), fmt::format("the {} of network {}", what, network.name));
    };
    if (network.name == kProvisioning || map.find("controller") || map.find("controllers"))
      for (const auto address : controllersOf(network)) add(address, "controller");
    for (const auto address : network.dns) add(address, "name server");
    for (const auto& server : network.boot_servers)
      if (server.tftp) add(*server.tftp, "boot server");
    for (const auto& subnet : network.subnets)
      for (const auto address : subnet.dns) add(address, "name server");
  }

  void once(Givers& given, const std::string& what, std::string_view kind, const Node& node) {
    auto [first, fresh] = given.emplace(what, &node);
    if (fresh) return;
    const Node& other = *first->second;
    // Of the keys mac and address both nodes have been told already (rules.cc).
    const bool self = &other == &node;
    if (!self && ((kind == "MAC" && node.mac.str() == what && other.mac.str() == what) ||
                  (kind == "address" && node.address.str() == what && other.address.str() == what)))
      return;
    error(node,
          self ? fmt::format("the {} {} of {} is there twice", kind, what, node.name.str())
               : fmt::format("the {} {} of {} is also that of {}", kind, what, node.name.str(),
                             other.name.str()),
          self
              ? std::string("one of its links has another one")
              : fmt::format("{} is at {}{}", other.name.str(), other.where.str(),
                            kind == "address"
                                ? "; a pool by name gives one address to names with the same number"
                                : ""));
  }

  void bmc(const Node& node) {
    constexpr std::string_view kScheme = "https://";
    if (!node.bmc.url.starts_with(kScheme)) return;
    const auto host = node.bmc.url.substr(kScheme.size(),
                                          node.bmc.url.find(':', kScheme.size()) - kScheme.size());
    if (Ipv4::parse(host)) bmcs_.emplace(host, &node);
  }

  void error(const Node& node, std::string what, std::string suggestion) {
    ++reader_.errors;
    reader_.diagnostics.error(node.where, std::move(what), std::move(suggestion));
  }

  const Cluster& cluster_;
  Reader& reader_;
  Givers macs_, addresses_, ports_, bmcs_;
  std::map<std::string, std::string> servers_;  ///< what it is, by address
  std::map<std::string, std::vector<const Node*>> problems_;
};

/// IPv6 networks that overlap; IPv4's are in rules.cc.
void ipv6Networks(const Cluster& cluster, const Value& root, Reader& reader) {
  const Value& networks = place(root, "networks");
  for (std::size_t i = 0; i < cluster.networks.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto &a = cluster.networks[j], &b = cluster.networks[i];
      if (a.cidr6 && b.cidr6 && a.cidr6->overlaps(*b.cidr6))
        reader.error(place(place(networks, b.name), "cidr6"),
                     fmt::format("the networks {} ({}) and {} ({}) overlap", a.name, a.cidr6->str(),
                                 b.name, b.cidr6->str()),
                     "give one of them another prefix");
    }
}

}  // namespace

void checkNodeNetworks(const Cluster& cluster, const DeclaredNodes& nodes, const Value& root,
                       Reader& reader) {
  ipv6Networks(cluster, root, reader);
  std::set<std::string> bad;  // nodes of these would repeat it, each in its own words
  for (const auto& [name, profile] : cluster.profiles) {
    const Value& entry = place(place(root, "profiles"), name);
    const Value& map = place(entry, "network");
    if (!profile.network) {
      if (entry.find("network")) bad.insert(name);  // it could not be read, and that is said
      continue;
    }
    const std::size_t before = reader.errors;
    ProfileLinks(cluster, profile, map, reader).run();
    if (reader.errors != before) bad.insert(name);
  }
  if (!networkNamed(cluster, kProvisioning)) return;
  const bool any = std::any_of(nodes.nodes.begin(), nodes.nodes.end(), [&](const auto& declared) {
    const auto profile = cluster.profiles.find(declared.node.profile);
    return declared.node.links ||
           (profile != cluster.profiles.end() && profile->second.network.has_value());
  });
  if (!any) return;
  GivenToNodes given(cluster, root, reader);
  for (const auto& declared : nodes.nodes)
    if (!bad.contains(declared.node.profile)) given.add(declared);
  given.report();
}

}  // namespace muster::inventory
