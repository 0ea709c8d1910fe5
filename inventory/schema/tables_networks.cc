// SPDX-License-Identifier: Apache-2.0
// The tables of `networks`: who answers DHCP where, subnets behind routers, boot servers near
// racks.
#include "base/ip_address.h"
#include "inventory/model/networks.h"
#include "inventory/model/special_networks.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {

namespace {

/// Also a tag of dnsmasq's.
constexpr TextFormat kPlaceName{"a name of at most 32 lower-case letters, digits and '-'",
                                "^[a-z0-9][a-z0-9-]{0,31}$", "row-a"};

constexpr TextFormat kCidr6{"an IPv6 network in CIDR form", R"(^[0-9a-fA-F:]+/\d{1,3}$)",
                            "fd00:30::/64", acceptAny};
constexpr TextFormat kIpv6{"an IPv6 address", "^[0-9a-fA-F:]+$", "fd00:30::1", acceptAny};
constexpr int kMinNetworkMtu = 576, kMaxNetworkMtu = 9'978, kMinIpv6Mtu = 1'280;

constexpr std::size_t kMaxControllers = 8;  ///< as agents take them

using Range = std::optional<std::pair<Ipv4, Ipv4>>;

void readRange(Range& range, const Value& value, const Shape& shape, Reader& reader) {
  auto read = readText(value, shape, reader);
  if (!read) return;
  auto dash = read->find('-');
  if (dash == std::string::npos)
    return reader.error(value, "a range has two addresses",
                        "write FIRST-LAST, for example 10.20.240.1-10.20.247.254");
  auto trim = [](std::string part) {
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    return part;
  };
  auto first = Ipv4::parse(trim(read->substr(0, dash)));
  auto last = Ipv4::parse(trim(read->substr(dash + 1)));
  if (!first) return reader.error(value, first.error().text());
  if (!last) return reader.error(value, last.error().text());
  if (*last < *first)
    return reader.error(value, "the range runs backwards",
                        fmt::format("write {}-{}", last->str(), first->str()));
  range = {*first, *last};
}

nlohmann::json rangeJson(const Range& range) {
  return range ? nlohmann::json(range->first.str() + "-" + range->second.str()) : nlohmann::json();
}

template <class Net>
void checkInside(const Net& network, Ipv4 address, std::string_view what, const Value& where,
                 Reader& reader) {
  std::uint32_t first = network.cidr.network.value();
  std::uint32_t last = first | ~network.cidr.netmask().value();
  if (!network.cidr.contains(address))
    reader.error(where,
                 fmt::format("the {} {} is outside {}", what, address.str(), network.cidr.str()),
                 "use an address of the network");
  else if (network.cidr.prefix_bits < 31 && (address.value() == first || address.value() == last))
    reader.error(where,
                 fmt::format("the {} {} is the network's {} address", what, address.str(),
                             address.value() == first ? "own" : "broadcast"),
                 "use a host address");
}

/// Also of 0.0.0.0/0, which holds them all. A fleet that is simulated on the controller answers on
/// loopback addresses, so these are only warned of.
void checkSpecial(const IpNetwork& network, const Value& where, Reader& reader) {
  static const auto kLoopback = IpNetwork::parse("127.0.0.0/8");
  if (kLoopback && kLoopback->contains(network.network) &&
      network.prefix_bits >= kLoopback->prefix_bits)
    reader.warning(where,
                   fmt::format("the network {} is loopback: only machines that are simulated on "
                               "this host have addresses there",
                               network.str()),
                   "use a private network, as 10.20.0.0/16");
  else if (const auto special = specialNetworkIn(network); !special.empty())
    reader.error(where,
                 fmt::format("the network {} reaches into {}, where no node can have an address",
                             network.str(), special),
                 "use a private network, as 10.20.0.0/16 or fd00:20::/64");
}

/// A name server at an address that no machine has answers nobody. One on the node itself is no
/// matter of a network, and its own resolver would then ask itself.
void checkNameServers(const std::vector<Ipv4>& servers, const Value& list, Reader& reader) {
  static const auto kLoopback = IpNetwork::parse("127.0.0.0/8");
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const IpNetwork alone{IpAddress(servers[i]), 32};
    const auto special = specialNetworkIn(alone);
    if (special.empty()) continue;
    const auto text = fmt::format("the name server {} is in {}", servers[i].str(), special);
    const Value& where = i < list.items.size() ? list.items[i] : list;
    if (kLoopback && kLoopback->contains(alone.network))
      reader.warning(where, text + ": each node would ask itself", "name a server that all reach");
    else
      reader.error(where, text + ", where no machine can be", "name a server that nodes reach");
  }
}

template <class Net>
void checkRange(const Net& network, std::optional<Ipv4> gateway, const Value& where,
                Reader& reader) {
  if (!network.dhcp_range) return;
  auto [first, last] = *network.dhcp_range;
  checkInside(network, first, "start of the range", where, reader);
  checkInside(network, last, "end of the range", where, reader);
  if (gateway && first <= *gateway && *gateway <= last)
    reader.error(where,
                 fmt::format("the DHCP range holds the gateway's address {}", gateway->str()),
                 "move the range");
}

ObjectSpec make_dhcpSpec() {
  return Table<Network>("dhcp", "dhcp", "Who answers DHCP on the network.")
      .optional("mode", &Network::dhcp_mode, choice({"authoritative", "proxy", "relay", "none"}),
                "authoritative: muster is the DHCP server. proxy: another server gives addresses, "
                "muster only says what to boot. "
                "relay: requests come through a relay agent of a router. none: no netboot on this "
                "network.")
      .custom("range", false, text(kIpv4Range),
              "Addresses for machines that are not declared, first-last.",
              [](Network& network, const Value& value, const Shape& shape, Reader& reader) {
                readRange(network.dhcp_range, value, shape, reader);
              })
      .prints([](const Network& network, const Printer&) { return rangeJson(network.dhcp_range); })
      .printsAlways({"mode"})
      .check([](Network& network, const Value& map, Reader& reader) {
        if (network.dhcp_range && network.dhcp_mode != DhcpMode::Authoritative &&
            network.dhcp_mode != DhcpMode::Relay)
          reader.error(place(map, "range"),
                       "a range has no meaning in this mode: muster gives no addresses",
                       "remove range, or write mode: authoritative");
      })
      .spec();
}
MUSTER_SPEC(dhcpSpec)

ObjectSpec make_bootServerSpec() {
  return Table<BootServer>(
             "boot-server", "boot server",
             "A server near some nodes that has copies of the controller's boot files; "
             "docs/netboot.md. Boot scripts come from the controller, and there the nodes enroll.")
      .optional("tftp", &BootServer::tftp, text(kIpv4),
                "Its address, where TFTP has undionly.kpxe and ipxe.efi; absent: the controller "
                "has them.")
      .optional("http", &BootServer::http, text(kMirror),
                "Its base URL, below which /ramos is the controller's (an nginx cache, say); "
                "absent: the controller itself.")
      .optional("racks", &BootServer::racks, listOf(text(kText)),
                "The racks whose nodes use it. A subnet names its own.")
      .printsAlways({"http", "racks"})
      .check([](BootServer& server, const Value& map, Reader& reader) {
        if (!server.tftp && server.http.empty())
          reader.error(map, fmt::format("the boot server {} serves nothing", server.name),
                       "add tftp, http or both");
        while (server.http.ends_with('/')) server.http.pop_back();
      })
      .spec();
}
MUSTER_SPEC(bootServerSpec)

ObjectSpec make_subnetSpec() {
  return Table<Subnet>("subnet", "subnet",
                       "A part of the provisioning network behind a router that relays DHCP to the "
                       "controller. Nodes are in it by their address.")
      .required("cidr", &Subnet::cidr, text(kCidr), "Address and prefix length.")
      .required("gateway", &Subnet::gateway, text(kIpv4),
                "The router that relays, the nodes' default route.")
      .custom("range", false, text(kIpv4Range),
              "Addresses for machines that are not declared, first-last.",
              [](Subnet& subnet, const Value& value, const Shape& shape, Reader& reader) {
                readRange(subnet.dhcp_range, value, shape, reader);
              })
      .prints([](const Subnet& subnet, const Printer&) { return rangeJson(subnet.dhcp_range); })
      .optional("dns", &Subnet::dns, listOf(text(kIpv4)),
                "Name servers of its nodes; absent: the network's.")
      .optional("image_mirrors", &Subnet::image_mirrors, listOf(text(kMirror)),
                "Image mirrors of its nodes; absent: the network's.")
      .optional("boot_server", &Subnet::boot_server, text(kPlaceName),
                "One of boot_servers; absent: the controller.")
      .optional("racks", &Subnet::racks, listOf(text(kText)),
                "The racks that are here: a node of theirs with an address elsewhere is an error.")
      .printsAlways({"dns", "image_mirrors", "boot_server", "racks"})
      .check([](Subnet& subnet, const Value& map, Reader& reader) {
        checkSpecial(subnet.cidr, place(map, "cidr"), reader);
        checkInside(subnet, subnet.gateway, "gateway", place(map, "gateway"), reader);
        checkRange(subnet, subnet.gateway, place(map, "range"), reader);
        checkNameServers(subnet.dns, place(map, "dns"), reader);
      })
      .spec();
}
MUSTER_SPEC(subnetSpec)

/// A rack that two entries of a section claim.
void checkRacks(const Value& section, Reader& reader) {
  std::map<std::string_view, std::pair<std::string_view, const Value*>> owner;
  for (const auto& [name, entry] : section.entries) {
    const Value* racks = entry.find("racks");
    if (!racks) continue;
    for (const Value& rack : racks->items) {
      const auto [first, fresh] = owner.try_emplace(rack.text, name.text, &rack);
      if (!fresh)
        reader.error(
            rack,
            fmt::format("rack {} is listed at {} already", shorten(rack.text), first->second.first),
            fmt::format("keep one; the other is at {}", reader.at(*first->second.second).str()));
    }
  }
}

void checkSubnets(const Network& network, const Value& map, Reader& reader) {
  checkRacks(place(map, "boot_servers"), reader);
  const Value* section = map.find("subnets");
  if (!section) return;
  checkRacks(*section, reader);
  if (network.name != "provisioning")
    return reader.error(*section, "only the network provisioning has subnets",
                        "declare them there");
  if (network.dhcp_mode != DhcpMode::Authoritative && network.dhcp_mode != DhcpMode::Relay)
    reader.error(*section, "subnets need muster as their DHCP server",
                 "write dhcp: {mode: relay}, or remove them");
  for (const auto& subnet : network.subnets) {
    const Value& entry = place(*section, subnet.name);
    const bool known =
        subnet.boot_server.empty() ||
        std::any_of(network.boot_servers.begin(), network.boot_servers.end(),
                    [&](const BootServer& server) { return server.name == subnet.boot_server; });
    if (!known)
      reader.error(
          place(entry, "boot_server"),
          fmt::format("\"{}\" is not declared under boot_servers", shorten(subnet.boot_server)),
          "declare it beside subnets, or remove boot_server");
  }
}

/// Of several hosts one serves; which one this is, the inventory does not know: it is the same on
/// all.
void checkControllers(Network& network, const Value& map, const Value& range, Reader& reader) {
  const Value* list = map.find("controllers");
  if (list && map.find("controller"))
    return reader.error(*list, "controller and controllers are both given",
                        "keep controllers, with that address in it");
  if (list && network.controllers.size() > kMaxControllers)
    return reader.error(*list,
                        fmt::format("{} controllers are too many", network.controllers.size()),
                        fmt::format("name at most {}", kMaxControllers));
  if (!network.controllers.empty())
    network.controller = network.controllers.front();
  else if (!map.find("controller"))
    network.controller = network.cidr.host(network.cidr.prefix_bits < 31 ? 1 : 0);
  const auto controllers = controllersOf(network);
  for (std::size_t i = 0; i < controllers.size(); ++i) {
    const auto address = controllers[i];
    const Value& where = list && i < list->items.size() ? list->items[i] : place(map, "controller");
    checkInside(network, address, "controller", where, reader);
    if (std::find(controllers.begin(), controllers.begin() + static_cast<std::ptrdiff_t>(i),
                  address) != controllers.begin() + static_cast<std::ptrdiff_t>(i))
      reader.error(where, fmt::format("the controller {} is listed twice", address.str()),
                   "name each host once, by its own address");
    if (network.gateway == address && list)
      reader.error(where, fmt::format("the controller {} is also the gateway", address.str()),
                   "name the address of a host that runs muster");
    if (network.dhcp_range && network.dhcp_range->first <= address &&
        address <= network.dhcp_range->second)
      reader.error(
          range, fmt::format("the DHCP range holds the controller's own address {}", address.str()),
          "move the range or the controller");
  }
}

void checkIpv6(const Network& network, const Value& map, Reader& reader) {
  if (network.cidr6 && network.cidr6->network.isV4())
    reader.error(place(map, "cidr6"), "cidr6 is an IPv4 network", "write it as cidr");
  else if (network.cidr6)
    checkSpecial(*network.cidr6, place(map, "cidr6"), reader);
  if (network.cidr6 && network.mtu && *network.mtu < kMinIpv6Mtu)
    reader.error(
        place(map, "mtu"),
        fmt::format("the network {} has IPv6 and an MTU of {}", network.name, *network.mtu),
        fmt::format("IPv6 needs {} bytes or more (RFC 8200)", kMinIpv6Mtu));
  if (!network.gateway6) return;
  if (network.gateway6->isV4())
    reader.error(place(map, "gateway6"), "gateway6 is an IPv4 address", "write it as gateway");
  else if (network.cidr6 && !network.gateway6->isLinkLocal() &&
           !network.cidr6->contains(*network.gateway6))
    reader.error(
        place(map, "gateway6"),
        fmt::format("the gateway {} is outside {}", network.gateway6->str(), network.cidr6->str()),
        "use an address of the network, or a link-local one");
}

void checkPool(const Network& network, const Value& map, Reader& reader) {
  if (!network.pool) return;
  const Value& where = place(map, "pool");
  if (network.pool->base && network.name == "provisioning")
    reader.error(place(where, "base"), "provisioning addresses are those that nodes declare",
                 "remove base; base6 is of use here");
  else if (network.pool->base && !network.cidr.contains(network.pool->base->v4()))
    reader.error(place(where, "base"),
                 fmt::format("the pool's base {} is outside {}", network.pool->base->str(),
                             network.cidr.str()),
                 "use an address of the network");
  if (!network.pool->base6) return;
  if (!network.cidr6)
    reader.error(place(where, "base6"), "the network has no IPv6", "add cidr6, or remove base6");
  else if (!network.cidr6->contains(*network.pool->base6))
    reader.error(place(where, "base6"),
                 fmt::format("the pool's base {} is outside {}", network.pool->base6->str(),
                             network.cidr6->str()),
                 "use an address of the network");
}

void checkNetwork(Network& network, const Value& map, Reader& reader) {
  checkSpecial(network.cidr, place(map, "cidr"), reader);
  checkIpv6(network, map, reader);
  checkPool(network, map, reader);
  checkNameServers(network.dns, place(map, "dns"), reader);
  if (network.gateway)
    checkInside(network, *network.gateway, "gateway", place(map, "gateway"), reader);
  const Value& where = place(place(map, "dhcp"), "range");
  checkRange(network, network.gateway, where, reader);
  checkControllers(network, map, where, reader);
  checkSubnets(network, map, reader);
}

ObjectSpec make_networkSpec() {
  return Table<Network>("network", "network",
                        "A network that nodes are on. The one named `provisioning` is where they "
                        "boot and are installed.")
      .required("cidr", &Network::cidr, text(kCidr), "Address and prefix length.")
      .optional("controller", &Network::controller, text(kIpv4),
                "Where muster listens; the first host of the network when absent.")
      .prints([](const Network& network, const Printer&) -> nlohmann::json {
        if (!network.controllers.empty()) return nullptr;  // then it is this host's: not the same
        return network.controller.str();                   // on every host
      })
      .optional("controllers", &Network::controllers, listOf(text(kIpv4), 1),
                "Instead of controller: the addresses of several hosts that share one PostgreSQL "
                "store. One of them serves, the others stand by; docs/two-hosts.md.")
      .optional("gateway", &Network::gateway, text(kIpv4), "Default route of the nodes.")
      .optional("dns", &Network::dns, listOf(text(kIpv4)), "Name servers of the nodes.")
      .optional("cidr6", &Network::cidr6, text(kCidr6),
                "IPv6 of installed nodes on this network; they are provisioned over IPv4.")
      .optional("gateway6", &Network::gateway6, text(kIpv6),
                "IPv6 default route of the nodes: in cidr6, or link-local.")
      .optional("mtu", &Network::mtu, integer(kMinNetworkMtu, kMaxNetworkMtu),
                "Largest packet of nodes' interfaces on it, in bytes; of profiles with network.")
      .optional("pool", &Network::pool, object(addressPoolSpec),
                "Where nodes get their addresses on it, where they say none themselves.")
      .optional("image_mirrors", &Network::image_mirrors, listOf(text(kMirror)),
                "Base URLs of servers that have the controller's /images too (an nginx cache, "
                "say); nodes ask all at once, and drop one that lies.")
      .optional("image_peers", &Network::image_peers, boolean(),
                "Whether nodes that are being imaged share the image with each other, nearest "
                "first. They listen on TCP port 6881 meanwhile.")
      .custom("dhcp", false, object(dhcpSpec), "Who answers DHCP.",
              [](Network& network, const Value& value, const Shape&, Reader& reader) {
                readObject(&network, value, *dhcpSpec(), reader);
              })
      .prints([](const Network& network, const Printer& printer) {
        return printObject(&network, *dhcpSpec(), printer);
      })
      .optional("boot_servers", &Network::boot_servers, mapOf(object(bootServerSpec), kPlaceName),
                "Servers with copies of the boot files, by name.")
      .optional("subnets", &Network::subnets, mapOf(object(subnetSpec), kPlaceName),
                "Its parts behind routers, by name.")
      .printsAlways({"controller", "dns", "dhcp"})
      .needs("gateway6", "cidr6")
      .check(checkNetwork)
      .spec();
}

}  // namespace

MUSTER_SPEC(networkSpec)

}  // namespace muster::inventory
