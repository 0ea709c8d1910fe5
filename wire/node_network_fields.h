// SPDX-License-Identifier: Apache-2.0
// The fields of a node's network, for the messages that hold one.
#pragma once

#include "base/ip_network.h"
#include "wire/fields.h"
#include "wire/node_network.h"

#include <algorithm>

namespace muster::wire {

namespace node_network {

inline constexpr std::size_t kMaxTextBytes = 256, kMaxLinks = 256, kMaxPerLink = 256;
inline constexpr std::uint64_t kMaxMtu = 65'535, kMaxVlan = 4094, kMaxMetric = 0xffff'ffff,
                               kMaxMiiMs = 60'000, kMaxMinLinks = 64;
inline constexpr Text kName{kMaxTextBytes};

inline constexpr Words<LinkKind, 3> kKinds{{{LinkKind::Ethernet, toString(LinkKind::Ethernet)},
                                            {LinkKind::Bond, toString(LinkKind::Bond)},
                                            {LinkKind::Vlan, toString(LinkKind::Vlan)}}};
inline constexpr Words<BondMode, 7> kModes{
    {{BondMode::BalanceRr, toString(BondMode::BalanceRr)},
     {BondMode::ActiveBackup, toString(BondMode::ActiveBackup)},
     {BondMode::BalanceXor, toString(BondMode::BalanceXor)},
     {BondMode::Broadcast, toString(BondMode::Broadcast)},
     {BondMode::Lacp, toString(BondMode::Lacp)},
     {BondMode::BalanceTlb, toString(BondMode::BalanceTlb)},
     {BondMode::BalanceAlb, toString(BondMode::BalanceAlb)}}};
inline constexpr Words<LacpRate, 2> kRates{
    {{LacpRate::Slow, toString(LacpRate::Slow)}, {LacpRate::Fast, toString(LacpRate::Fast)}}};
inline constexpr Words<BondHash, 5> kHashes{{{BondHash::Layer2, toString(BondHash::Layer2)},
                                             {BondHash::Layer23, toString(BondHash::Layer23)},
                                             {BondHash::Layer34, toString(BondHash::Layer34)},
                                             {BondHash::Encap23, toString(BondHash::Encap23)},
                                             {BondHash::Encap34, toString(BondHash::Encap34)}}};

inline constexpr auto kInterface = [](std::string_view name) -> std::string_view {
  return isInterfaceName(name) ? "" : "is no name of an interface";
};
inline constexpr auto kInterfaceOrNone = [](std::string_view name) -> std::string_view {
  return name.empty() ? "" : kInterface(name);
};
inline constexpr auto kInterfaces = [](const std::vector<std::string>& names) -> std::string_view {
  return std::ranges::all_of(names, isInterfaceName) ? "" : "has an entry that is no interface";
};

inline bool onlyOf(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) == std::string_view::npos;
}
inline constexpr auto kMac = [](std::string_view mac) -> std::string_view {
  constexpr std::size_t kMacChars = 17;
  return mac.empty() || (mac.size() == kMacChars && onlyOf(mac, "0123456789abcdef:"))
             ? ""
             : "is no MAC address";
};
inline constexpr auto kPci = [](std::string_view pci) -> std::string_view {
  constexpr std::size_t kPciChars = 12;
  return pci.empty() || (pci.size() == kPciChars && onlyOf(pci, "0123456789abcdef:."))
             ? ""
             : "is no PCI address";
};
/// Names of LLDP go into messages only.
inline constexpr auto kPlain = [](std::string_view text) -> std::string_view {
  return std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c == 127; })
             ? "has blanks or line breaks in it"
             : "";
};

inline bool isAddress(std::string_view text) { return IpAddress::parse(text).has_value(); }
inline bool isHostInNetwork(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto address = IpAddress::parse(text.substr(0, slash));
  return address && IpNetwork::parse(
                        fmt::format("{}{}", address->isV4() ? "0.0.0.0" : "::", text.substr(slash)))
                        .has_value();
}
inline constexpr auto kAddress = [](std::string_view text) -> std::string_view {
  return isAddress(text) ? "" : "is not an address";
};
inline constexpr auto kAddresses = [](const std::vector<std::string>& list) -> std::string_view {
  return std::ranges::all_of(list, isAddress) ? "" : "has an entry that is no address";
};
inline constexpr auto kHost = [](std::string_view text) -> std::string_view {
  return isHostInNetwork(text) ? "" : "is no address with its prefix";
};
inline constexpr auto kHosts = [](const std::vector<std::string>& list) -> std::string_view {
  return std::ranges::all_of(list, isHostInNetwork) ? "" : "has an entry without address or prefix";
};
inline constexpr auto kTarget = [](std::string_view text) -> std::string_view {
  return IpNetwork::parse(text) ? "" : "is not a network";
};
inline constexpr auto kDomains = [](const std::vector<std::string>& list) -> std::string_view {
  const auto good = [](std::string_view name) {
    return !name.empty() && name.front() != '-' &&
           onlyOf(name, "abcdefghijklmnopqrstuvwxyz0123456789-.");
  };
  return std::ranges::all_of(list, good) ? "" : "has an entry that is no DNS domain";
};

}  // namespace node_network

template <>
inline constexpr auto kFields<NetworkRoute> = std::tuple(
    field("to", &NetworkRoute::to, node_network::kName).checked(node_network::kTarget),
    field("via", &NetworkRoute::via, node_network::kName).checked(node_network::kAddress),
    field("metric", &NetworkRoute::metric, Whole{node_network::kMaxMetric}).omitted());

template <>
inline constexpr auto kFields<BondParameters> = std::tuple(
    field("mode", &BondParameters::mode, Word{&node_network::kModes, node_network::kMaxTextBytes}),
    field("lacp_rate", &BondParameters::lacp_rate,
          Word{&node_network::kRates, node_network::kMaxTextBytes})
        .omitted(),
    field("hash", &BondParameters::hash, Word{&node_network::kHashes, node_network::kMaxTextBytes})
        .omitted(),
    field("mii_ms", &BondParameters::mii_ms, Whole{node_network::kMaxMiiMs}).omitted(),
    field("min_links", &BondParameters::min_links, Whole{node_network::kMaxMinLinks}).omitted(),
    field("primary", &BondParameters::primary, node_network::kName)
        .omitted()
        .checked(node_network::kInterfaceOrNone));

template <>
inline constexpr auto kFields<NetworkLink> = std::tuple(
    field("name", &NetworkLink::name, node_network::kName).checked(node_network::kInterface),
    field("kind", &NetworkLink::kind, Word{&node_network::kKinds, node_network::kMaxTextBytes}),
    field("mac", &NetworkLink::mac, node_network::kName).omitted().checked(node_network::kMac),
    field("pci", &NetworkLink::pci, node_network::kName).omitted().checked(node_network::kPci),
    field("members", &NetworkLink::members,
          Texts{node_network::kMaxPerLink, node_network::kMaxTextBytes})
        .omitted()
        .checked(node_network::kInterfaces),
    field("bond", &NetworkLink::bond, Object{}).onlyIf([](const NetworkLink& link) {
      return link.kind == LinkKind::Bond;
    }),
    field("parent", &NetworkLink::parent, node_network::kName)
        .omitted()
        .checked(node_network::kInterfaceOrNone),
    field("vlan_id", &NetworkLink::vlan_id, Whole{node_network::kMaxVlan}).omitted(),
    field("mtu", &NetworkLink::mtu, Whole{node_network::kMaxMtu}).omitted(),
    field("addresses", &NetworkLink::addresses,
          Texts{node_network::kMaxPerLink, node_network::kMaxTextBytes})
        .omitted()
        .checked(node_network::kHosts),
    field("routes", &NetworkLink::routes, Items{node_network::kMaxPerLink}).omitted(),
    field("dns", &NetworkLink::dns, Texts{node_network::kMaxPerLink, node_network::kMaxTextBytes})
        .omitted()
        .checked(node_network::kAddresses),
    field("switch", &NetworkLink::switch_name, node_network::kName)
        .omitted()
        .checked(node_network::kPlain),
    field("port", &NetworkLink::switch_port, node_network::kName)
        .omitted()
        .checked(node_network::kPlain));

template <>
inline constexpr auto kFields<ProvisioningPath> = std::tuple(
    field("mac", &ProvisioningPath::mac, node_network::kName).checked(node_network::kMac),
    field("link", &ProvisioningPath::link, node_network::kName).checked(node_network::kInterface),
    field("address", &ProvisioningPath::address, node_network::kName).checked(node_network::kHost),
    field("routes", &ProvisioningPath::routes, Items{node_network::kMaxPerLink}).omitted(),
    field("controllers", &ProvisioningPath::controllers,
          Texts{node_network::kMaxPerLink, node_network::kMaxTextBytes})
        .checked(node_network::kAddresses));

template <>
inline constexpr auto kFields<NodeNetwork> = std::tuple(
    field("provisioning", &NodeNetwork::provisioning, Object{}),
    field("links", &NodeNetwork::links, Items{node_network::kMaxLinks}).checked(kNotEmpty),
    field("search", &NodeNetwork::search,
          Texts{node_network::kMaxPerLink, node_network::kMaxTextBytes})
        .omitted()
        .checked(node_network::kDomains));

}  // namespace muster::wire
