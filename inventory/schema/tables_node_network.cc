// SPDX-License-Identifier: Apache-2.0
// The tables of a profile's `network` and of a network's `pool`, and what the columns nics,
// addresses and ports of a node hold.
#include "inventory/model/networks.h"
#include "inventory/model/node.h"
#include "inventory/model/node_network.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {

namespace {

constexpr int kMinMtu = 576, kMaxMtu = 9'978, kMaxVlanId = 4'094, kMaxMetric = 1'000'000;
constexpr int kMinMiiMs = 10, kMaxMiiMs = 10'000, kMaxMinLinks = 16;

/// Names that the kernel or systemd gives themselves lead to races when links are renamed.
Result<void> checkInterface(std::string_view text) {
  if (!wire::isInterfaceName(text))
    return fail(ErrorCode::InvalidInput,
                "an interface's name has 1 to 15 letters, digits, '.', '_', '-'");
  const auto numbered = [&](std::string_view prefix) {
    return text.size() > prefix.size() && text.starts_with(prefix) &&
           text.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
  };
  if (text.find_first_not_of("0123456789") == std::string_view::npos)
    return fail(ErrorCode::InvalidInput,
                "a number is taken for an interface's index; give a name, for example data0");
  if (text == "lo" || text == "all" || text == "bonding_masters" || text == "default" ||
      numbered("eth") || numbered("wlan") || numbered("ib"))
    return fail(ErrorCode::InvalidInput,
                "the kernel gives this name itself; choose another one, for example data0");
  return {};
}

Result<void> checkMatch(std::string_view text) {
  TRY_OK(NicMatch::parse(text));
  return {};
}
Result<void> checkTarget(std::string_view text) {
  TRY_OK(RouteTarget::parse(text));
  return {};
}

constexpr TextFormat kInterface{"the name of an interface", "^[A-Za-z0-9_][A-Za-z0-9._-]{0,14}$",
                                "data0", checkInterface};
constexpr TextFormat kMatch{
    "how a NIC is found", R"(^(provisioning|mac|pci:[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7])$)",
    "pci:0000:18:00.0", checkMatch};
constexpr TextFormat kTarget{"default, or a network in CIDR form",
                             R"(^(default|[0-9a-fA-F:.]+/\d{1,3})$)", "10.40.0.0/16", checkTarget};
constexpr TextFormat kAnyAddress{"an IPv4 or IPv6 address", R"(^[0-9a-fA-F:.]+$)", "10.30.0.1",
                                 acceptAny};

/// Keys that every kind of link has.
template <class T>
void addLinkFields(Table<T>& table) {
  table
      .optional("mtu", &T::mtu, integer(kMinMtu, kMaxMtu),
                "Largest packet, in bytes; absent: its networks'.")
      .optional("addresses", &T::addresses, listOf(reference("networks")),
                "The networks on which it has an address. The provisioning address is on the NIC "
                "that boots, or on the bond over it, without being named.")
      .optional("routes", &T::routes, listOf(object(networkRouteSpec)),
                "Further routes by its networks' gateways.");
}

ObjectSpec make_networkRouteSpec() {
  return Table<DeclaredRoute>("route", "route", "Where packets to a network go.")
      .required("to", &DeclaredRoute::to, text(kTarget), "default, or a network in CIDR form.")
      .required("via", &DeclaredRoute::via, text(kAnyAddress), "The gateway, an address.")
      .optional("metric", &DeclaredRoute::metric, integer(1, kMaxMetric),
                "The smaller of two is taken; absent: the system's own.")
      .spec();
}

ObjectSpec make_ethernetSpec() {
  Table<DeclaredEthernet> table("ethernet", "Ethernet",
                                "A NIC of the node; its key becomes the interface's name.");
  table.required("match", &DeclaredEthernet::match, text(kMatch),
                 "provisioning: the NIC that boots. pci:ADDRESS: the NIC at this place. mac: the "
                 "one whose MAC the node's nics say.");
  addLinkFields(table);
  return table.spec();
}
MUSTER_SPEC(ethernetSpec)

void checkBond(DeclaredBond& bond, const Value& map, Reader& reader) {
  if (bond.interfaces.size() < 2)
    reader.error(place(map, "interfaces"),
                 fmt::format("the bond {} has {} member{}", bond.name, bond.interfaces.size(),
                             bond.interfaces.size() == 1 ? "" : "s"),
                 "name at least two Ethernets, or give the addresses to the Ethernet itself");
  const auto refuse = [&](std::string_view key, bool fits, std::string_view modes) {
    if (const Value* value = map.find(key); value && !fits)
      reader.error(*value, fmt::format("{} means nothing in mode {}", key, toString(bond.mode)),
                   fmt::format("remove it, or write mode: {}", modes));
  };
  refuse("lacp_rate", bond.mode == BondMode::Lacp, "802.3ad");
  refuse("transmit_hash_policy", wire::hashes(bond.mode), "802.3ad");
  refuse("min_links", bond.mode == BondMode::Lacp, "802.3ad");
  refuse("primary", wire::hasPrimary(bond.mode), "active-backup");
  refuse("switch_fallback", wire::needsSwitch(bond.mode), "802.3ad");
  if (bond.min_links > static_cast<int>(bond.interfaces.size()))
    reader.error(place(map, "min_links"),
                 fmt::format("the bond {} has fewer members than min_links", bond.name),
                 "write a smaller number");
  if (!bond.primary.empty() && std::find(bond.interfaces.begin(), bond.interfaces.end(),
                                         bond.primary) == bond.interfaces.end())
    reader.error(place(map, "primary"),
                 fmt::format("{} is no member of the bond {}", bond.primary, bond.name),
                 "name one of its interfaces");
}

ObjectSpec make_bondSpec() {
  Table<DeclaredBond> table("bond", "bond", "Ethernets that are one interface.");
  table
      .required("interfaces", &DeclaredBond::interfaces, listOf(text(kInterface), 1),
                "The Ethernets in it.")
      .optional("mode", &DeclaredBond::mode,
                choice({"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad",
                        "balance-tlb", "balance-alb"}),
                "How they work together; 802.3ad is LACP.")
      .optional("lacp_rate", &DeclaredBond::lacp_rate, choice({"slow", "fast"}),
                "How often LACP is sent: every 30 s or every second.")
      .optional("transmit_hash_policy", &DeclaredBond::hash,
                choice({"layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4"}),
                "By what a packet's member is chosen.")
      .optional("mii_monitor_interval", &DeclaredBond::mii_ms, integer(kMinMiiMs, kMaxMiiMs),
                "Milliseconds between looks at the members' carriers.")
      .optional("min_links", &DeclaredBond::min_links, integer(1, kMaxMinLinks),
                "With fewer members up the bond has no carrier.")
      .optional(
          "primary", &DeclaredBond::primary, text(kInterface),
          "The member that is taken while it has a carrier; absent: the NIC that boots, where "
          "it is a member.")
      .optional("switch_fallback", &DeclaredBond::switch_fallback, boolean(),
                "That the switch forwards on one of these ports while no LACP is spoken (LACP "
                "fallback, suspend-individual off). Needed where the NIC that boots is a member: "
                "firmware and boot loaders speak no LACP.");
  addLinkFields(table);
  return table.check(checkBond).spec();
}
MUSTER_SPEC(bondSpec)

ObjectSpec make_vlanSpec() {
  Table<DeclaredVlan> table("vlan", "VLAN", "A VLAN on an Ethernet or a bond.");
  table.required("id", &DeclaredVlan::id, integer(1, kMaxVlanId), "Its number in the frames.")
      .required("link", &DeclaredVlan::link, text(kInterface), "The Ethernet or bond below it.");
  addLinkFields(table);
  return table.spec();
}
MUSTER_SPEC(vlanSpec)

ObjectSpec make_nodeNetworkSpec() {
  return Table<NodeNetworkSpec>(
             "node-network", "node network",
             "The whole network of installed nodes, in netplan's words; docs/node-network.md.")
      .required("ethernets", &NodeNetworkSpec::ethernets, mapOf(object(ethernetSpec), kInterface),
                "NICs, by the name that their interface gets. One of them matches provisioning.")
      .optional("bonds", &NodeNetworkSpec::bonds, mapOf(object(bondSpec), kInterface),
                "Bonds, by name.")
      .optional("vlans", &NodeNetworkSpec::vlans, mapOf(object(vlanSpec), kInterface),
                "VLANs, by name.")
      .optional("default_route", &NodeNetworkSpec::default_route, reference("networks"),
                "The network whose gateway is the default route.")
      .optional("search", &NodeNetworkSpec::search, listOf(text(kDomain)),
                "DNS domains that are added to short names.")
      .spec();
}

ObjectSpec make_addressPoolSpec() {
  return Table<AddressPool>("address-pool", "address pool",
                            "Where nodes get their addresses on the network. A node's place in it "
                            "does not change when others come or leave.")
      .optional("base", &AddressPool::base, text(kIpv4), "The IPv4 address of place 0.")
      .optional("base6", &AddressPool::base6, text(kAnyAddress), "The IPv6 address of place 0.")
      .optional("by", &AddressPool::by, choice({"address", "name"}),
                "The node's place. address: how far its provisioning address is from the start of "
                "the provisioning network. name: the number at the end of its name.")
      .printsAlways({"by"})
      .check([](AddressPool& pool, const Value& map, Reader& reader) {
        if (!pool.base && !pool.base6)
          reader.error(map, "the pool has no addresses", "add base, base6 or both");
        if (pool.base6 && pool.base6->isV4())
          reader.error(place(map, "base6"), "base6 is an IPv4 address", "write it as base");
      })
      .spec();
}

}  // namespace

MUSTER_SPEC(networkRouteSpec)
MUSTER_SPEC(nodeNetworkSpec)
MUSTER_SPEC(addressPoolSpec)

// ---- columns of nodes

namespace {

template <class Member, class Parse>
void readColumn(Node& node, Member NodeLinks::* member, Parse parse, const Value& value,
                const Shape& shape, Reader& reader) {
  const auto read = readText(value, shape, reader);
  if (!read) return;
  auto parsed = parse(*read);
  if (!parsed) return reader.error(value, parsed.error().text());
  if (!node.links) node.links.emplace();
  (*node.links).*member = std::move(*parsed);
}

}  // namespace

/// parseNics, and what each MAC must be.
Result<std::map<std::string, Mac>> parseRealNics(std::string_view text) {
  TRY(nics, parseNics(text));
  for (const auto& [name, mac] : nics)
    if (auto good = checkMac(mac.str()); !good)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{}={}: {}", name, mac.str(), good.error().text()));
  return std::move(nics);
}

void readNodeNics(Node& node, const Value& value, const Shape& shape, Reader& reader) {
  readColumn(node, &NodeLinks::nics, parseRealNics, value, shape, reader);
}
void readNodeAddresses(Node& node, const Value& value, const Shape& shape, Reader& reader) {
  readColumn(node, &NodeLinks::addresses, parseNodeAddresses, value, shape, reader);
}
void readNodePorts(Node& node, const Value& value, const Shape& shape, Reader& reader) {
  readColumn(node, &NodeLinks::ports, parsePorts, value, shape, reader);
}

}  // namespace muster::inventory
