// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/node_network.h"

#include "base/ip_network.h"
#include "base/json_input.h"
#include "base/json_members.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::validate {

namespace {

using nlohmann::json;

constexpr std::string_view kNoPartner = "00:00:00:00:00:00";
constexpr int kKernelDefaultMetric6 = 1024;  ///< of IPv6 routes that say none

int numberOf(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_number_integer()
             ? found->get<int>()
             : 0;
}
json objectIn(const json& object, const char* key) {
  return object.is_object() ? object.value(key, json::object()) : json::object();
}
bool isSet(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

KernelLink linkOf(const json& row) {
  KernelLink link;
  link.name = textOf(row, "ifname");
  link.mac = textOf(row, "address");
  link.permanent_mac = textOf(row, "permaddr");
  if (textOf(row, "parentbus") == "pci") link.pci = textOf(row, "parentdev");
  link.master = textOf(row, "master");
  link.parent = textOf(row, "link");
  link.mtu = numberOf(row, "mtu");
  for (const auto& flag : row.value("flags", json::array())) {
    link.up = link.up || flag == "UP";
    link.carrier = link.carrier || flag == "LOWER_UP";
  }
  const auto info = objectIn(row, "linkinfo");
  link.kind = textOf(info, "info_kind");
  const auto data = objectIn(info, "info_data");
  link.vlan_id = numberOf(data, "id");
  link.mode = textOf(data, "mode");
  link.hash = textOf(data, "xmit_hash_policy");
  link.lacp_rate = textOf(data, "ad_lacp_rate");
  link.primary = textOf(data, "primary");
  link.mii_ms = numberOf(data, "miimon");
  link.min_links = numberOf(data, "min_links");
  const auto lacp = objectIn(data, "ad_info");
  link.aggregator = numberOf(lacp, "aggregator");
  link.partner_mac = textOf(lacp, "partner_mac");
  const auto member = objectIn(info, "info_slave_data");
  link.mii_status = textOf(member, "mii_status");
  link.member_aggregator = numberOf(member, "ad_aggregator_id");
  if (const auto own = textOf(member, "perm_hwaddr"); !own.empty()) link.permanent_mac = own;
  for (const auto& address : row.value("addr_info", json::array()))
    if (textOf(address, "scope") == "global")
      link.addresses.push_back(
          {fmt::format("{}/{}", textOf(address, "local"), numberOf(address, "prefixlen")),
           isSet(address, "dadfailed"), isSet(address, "tentative")});
  return link;
}

/// "default" and single addresses as networks.
std::string targetOf(const std::string& to, bool v6) {
  if (to == "default") return v6 ? "::/0" : "0.0.0.0/0";
  return to.find('/') != std::string::npos ? to : to + (v6 ? "/128" : "/32");
}

/// Errors: Corrupt
Result<json> listIn(std::string_view text, const char* what) {
  auto list = jsonOrNone(text, kAgentJson);
  if (!list.is_array())
    return fail(ErrorCode::Corrupt, fmt::format("{} did not answer with its JSON", what));
  return list;
}

Result<void> addRoutes(std::string_view text, bool v6, std::vector<KernelRoute>& routes) {
  TRY(list, listIn(text, v6 ? "ip -6 route" : "ip route"));
  for (const auto& row : list)
    if (row.is_object())
      routes.push_back({targetOf(textOf(row, "dst"), v6), textOf(row, "gateway"),
                        textOf(row, "dev"), numberOf(row, "metric")});
  return {};
}

/// Compares one node's links, and keeps what is wrong.
class Comparison {
 public:
  Comparison(const wire::NodeNetwork& declared, const KernelNetwork& kernel)
      : declared_(declared), kernel_(kernel) {}

  std::vector<std::string> run() {
    for (const auto& link : declared_.links) {
      const auto found = kernel_.links.find(link.name);
      if (found == kernel_.links.end()) {
        missing(link);
        continue;
      }
      of(link, found->second);
    }
    defaultRoutes();
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void missing(const wire::NetworkLink& link) {
    if (link.kind != wire::LinkKind::Ethernet)
      return problem("the {} {} is not there", toString(link.kind), link.name);
    for (const auto& [name, other] : kernel_.links)
      if ((!link.mac.empty() && other.permanent_mac == link.mac && other.kind.empty()) ||
          (!link.pci.empty() && other.pci == link.pci))
        return problem("{} is not there; its NIC is named {}: udev did not rename it", link.name,
                       name);
    link.mac.empty()
        ? problem("{} is not there: no NIC at {}; is it in its slot?", link.name, link.pci)
        : problem("{} is not there: no NIC with the MAC {}; was it replaced?", link.name, link.mac);
  }

  void of(const wire::NetworkLink& link, const KernelLink& seen) {
    if (link.kind == wire::LinkKind::Ethernet) identity(link, seen);
    if (link.kind == wire::LinkKind::Bond) bond(link, seen);
    if (link.kind == wire::LinkKind::Vlan &&
        (seen.kind != "vlan" || seen.vlan_id != link.vlan_id || seen.parent != link.parent))
      problem("{} is {} {} on {}, declared is VLAN {} on {}", link.name,
              seen.kind.empty() ? "no VLAN" : seen.kind, seen.vlan_id, seen.parent, link.vlan_id,
              link.parent);
    if (!seen.up)
      problem("{} is down", link.name);
    else if (!seen.carrier)
      problem("{} has no carrier; check its cable and the switch port", link.name);
    if (link.mtu != 0 && seen.mtu != link.mtu)
      problem("{} has the MTU {}, declared is {}", link.name, seen.mtu, link.mtu);
    addresses(link, seen);
    for (const auto& route : link.routes) routeIsThere(link, route);
  }

  void identity(const wire::NetworkLink& link, const KernelLink& seen) {
    const auto& mac = seen.permanent_mac.empty() ? seen.mac : seen.permanent_mac;
    if (!link.mac.empty() && mac != link.mac)
      problem("{} is the NIC {}, declared is {}", link.name, mac, link.mac);
    if (!link.pci.empty() && seen.pci != link.pci)
      problem("{} is the NIC at {}, declared is {}", link.name, seen.pci, link.pci);
    const auto* bond = declared_.bondOf(link.name);
    if (const std::string master = bond ? bond->name : std::string(); seen.master != master)
      problem("{} is {}, declared is {}", link.name,
              seen.master.empty() ? "in no bond" : "in " + seen.master,
              bond ? "in " + master : "in no bond");
  }

  void bond(const wire::NetworkLink& link, const KernelLink& seen) {
    if (seen.kind != "bond") return problem("{} is no bond", link.name);
    const auto same = [&](std::string_view what, const auto& is, const auto& wanted) {
      if (is != wanted) problem("{} has {} {}, declared is {}", link.name, what, is, wanted);
    };
    same("the mode", seen.mode, std::string(toString(link.bond.mode)));
    same("a look at carriers every (ms)", seen.mii_ms, link.bond.mii_ms);
    if (wire::hashes(link.bond.mode))
      same("the hash policy", seen.hash, std::string(toString(link.bond.hash)));
    if (wire::hasPrimary(link.bond.mode)) same("the primary", seen.primary, link.bond.primary);
    if (link.bond.mode == wire::BondMode::Lacp) {
      same("the LACP rate", seen.lacp_rate, std::string(toString(link.bond.lacp_rate)));
      same("min_links", seen.min_links, link.bond.min_links);
      if (seen.partner_mac.empty() || seen.partner_mac == kNoPartner)
        problem("{}: the switch does not speak LACP; check its port channel", link.name);
    }
    for (const auto& name : link.members) {
      const auto member = kernel_.links.find(name);
      if (member == kernel_.links.end() || member->second.master != link.name) continue;  // said
      if (member->second.mii_status != "UP")
        problem("{}: its member {} is {}; check the cable and the switch port", link.name, name,
                member->second.mii_status);
      else if (link.bond.mode == wire::BondMode::Lacp && seen.partner_mac != kNoPartner &&
               member->second.member_aggregator != seen.aggregator)
        problem(
            "{}: its member {} did not join by LACP; its switch port is in another port "
            "channel, or in none",
            link.name, name);
    }
  }

  void addresses(const wire::NetworkLink& link, const KernelLink& seen) {
    for (const auto& wanted : link.addresses) {
      const auto found =
          std::find_if(seen.addresses.begin(), seen.addresses.end(),
                       [&](const KernelAddress& each) { return each.text == wanted; });
      if (found == seen.addresses.end())
        problem("{}: the address {} is missing", link.name, wanted);
      else if (found->duplicate)
        problem("{}: the address {} is another machine's too (duplicate address detection)",
                link.name, wanted);
      else if (found->tentative)
        problem("{}: the address {} is not yet usable", link.name, wanted);
    }
    for (const auto& each : seen.addresses)
      if (std::find(link.addresses.begin(), link.addresses.end(), each.text) ==
          link.addresses.end())
        problem("{}: the address {} is not declared", link.name, each.text);
  }

  static bool isThis(const KernelRoute& seen, const std::string& link,
                     const wire::NetworkRoute& wanted) {
    const bool v6 = wanted.to.find(':') != std::string::npos;
    const int metric = wanted.metric != 0 ? wanted.metric : v6 ? kKernelDefaultMetric6 : 0;
    // Systems give routes without a metric one of their own (NetworkManager 100 and up).
    return seen.link == link && seen.to == wanted.to && seen.via == wanted.via &&
           (wanted.metric == 0 || seen.metric == metric);
  }

  void routeIsThere(const wire::NetworkLink& link, const wire::NetworkRoute& wanted) {
    if (std::none_of(kernel_.routes.begin(), kernel_.routes.end(),
                     [&](const KernelRoute& seen) { return isThis(seen, link.name, wanted); }))
      problem("{}: the route to {} by {}{} is missing", link.name, wanted.to, wanted.via,
              wanted.metric == 0 ? "" : fmt::format(" (metric {})", wanted.metric));
  }

  /// One that nobody declared may be taken before the declared one.
  void defaultRoutes() {
    for (const auto& seen : kernel_.routes) {
      if (seen.to != "0.0.0.0/0" && seen.to != "::/0") continue;
      const auto* link = declared_.find(seen.link);
      if (link && std::any_of(link->routes.begin(), link->routes.end(),
                              [&](const wire::NetworkRoute& wanted) {
                                return isThis(seen, link->name, wanted);
                              }))
        continue;
      problem("a default route by {} on {} is not declared", seen.via, seen.link);
    }
  }

  const wire::NodeNetwork& declared_;
  const KernelNetwork& kernel_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<KernelNetwork> parseKernelNetwork(std::string_view addresses, std::string_view routes,
                                         std::string_view routes6) {
  TRY(list, listIn(addresses, "ip addr"));
  KernelNetwork out;
  for (const auto& row : list) {
    if (!row.is_object() || textOf(row, "ifname").empty()) continue;
    auto link = linkOf(row);
    out.links.emplace(link.name, std::move(link));
  }
  if (out.links.empty()) return fail(ErrorCode::Corrupt, "ip addr names no interface at all");
  TRY_OK(addRoutes(routes, false, out.routes));
  TRY_OK(addRoutes(routes6, true, out.routes));
  return out;
}

std::vector<std::string> networkProblems(const wire::NodeNetwork& declared,
                                         const KernelNetwork& kernel) {
  return Comparison(declared, kernel).run();
}

}  // namespace muster::validate
