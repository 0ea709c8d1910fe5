// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/site.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_positions.h"
#include "inventory/model/profile.h"
#include "validate/gates.h"
#include "validate/pair_partner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace muster::validate::isolate {
namespace {

using Places = std::map<std::string, std::map<NodeName, int>>;  // fabric → node → place

void placeNode(const inventory::Cluster& cluster, const Places& places, const inventory::Node& node,
               SiteNode& made, Site& site) {
  const auto fabric = cluster.fabrics.find(cluster.profileOf(node).fabric);
  std::string leaf = node.rack.empty() ? "no rack" : node.rack;
  if (!site.over_host_network && fabric != cluster.fabrics.end() &&
      fabric->second.shape == inventory::FabricShape::RailOptimized) {
    const auto& on_it = places.at(fabric->first);
    const auto found = on_it.find(node.name);
    const int place = found == on_it.end() ? 0 : found->second;
    leaf = fmt::format("{}leaf-su{}", fabric->second.switch_prefix,
                       place / fabric->second.nodes_per_su + 1);
    made.leaf_port = place % fabric->second.nodes_per_su + 1;
    site.leaves_are_switches = true;
  }
  const auto known = std::find(site.leaf_names.begin(), site.leaf_names.end(), leaf);
  site.layout.leaf.push_back(static_cast<int>(known - site.leaf_names.begin()));
  site.layout.pod.push_back(0);
  if (known == site.leaf_names.end()) site.leaf_names.push_back(leaf);
}

/// What is tested of this node, rail by rail; empty: nothing.
std::vector<std::string> railsOf(const inventory::Cluster& cluster,
                                 const gateway::AgentGateway& agents, const inventory::Node& node,
                                 const Engine& engine) {
  if (engine.kind == EngineKind::Tcp) return {"TCP"};
  auto devices = railDevicesOf(cluster, node, agents);
  if (engine.kind == EngineKind::Rdma ||
      devices.size() == static_cast<std::size_t>(engine.ranks_per_node))
    return devices;
  devices.clear();  // not a NIC a GPU: the GPU is all that can be named
  for (int gpu = 0; gpu < engine.ranks_per_node; ++gpu)
    devices.push_back(fmt::format("GPU {}", gpu));
  return devices;
}

std::string percent(double share) {
  return share <= 0 ? "nothing" : fmt::format("{:.1f} %", 100 * share);
}
std::string railWord(const SiteNode& node, int rail) {
  return fmt::format("rail {} ({})", rail, node.devices[static_cast<std::size_t>(rail)]);
}
std::string switchWord(const Site& site, int leaf, int rail) {
  const auto& name = site.leaf_names[static_cast<std::size_t>(leaf)];
  return site.leaves_are_switches && rail >= 0 ? fmt::format("{}-r{}", name, rail) : name;
}

/// Of a fault that comes and goes.
std::string oftenBad(const Culprit& culprit) {
  return fmt::format(
      "bad in {} of its {} tests with good nodes, which congestion does not explain; "
      "then it reaches {}",
      culprit.bad, culprit.tests, percent(culprit.reached));
}

Told tellNode(const Site& site, const Culprit& culprit) {
  const auto& node = site.nodes[static_cast<std::size_t>(culprit.a)];
  if (culprit.bad > 0)
    return {node.name.str(), oftenBad(culprit),
            fmt::format("an intermittent fault, or one that began during the run: see `muster why "
                        "{0}` and its kernel log for link resets, XIDs and throttling, keep it out "
                        "of the pool, and run the isolation again",
                        node.name.str())};
  if (culprit.reached <= 0 && site.over_host_network)
    return {node.name.str(), "no test with a proven good node works",
            fmt::format("see `muster why {}` and its kernel log; check link, address and firewall "
                        "of its host network",
                        node.name.str())};
  if (site.over_host_network)
    return {node.name.str(),
            fmt::format("reaches {} of its peers on the host network", percent(culprit.reached)),
            "compare its network card's link speed, PCIe width and settings, and what else it "
            "runs, with a good node; the fabric took no part in these tests"};
  if (culprit.reached <= 0)
    return {node.name.str(), "no test with a proven good node works",
            fmt::format("see `muster why {0}` and its kernel log; check that its RDMA driver is "
                        "loaded and its ports are up, then reseat or replace the NIC",
                        node.name.str())};
  return {node.name.str(),
          fmt::format("reaches {} of its peers on every rail", percent(culprit.reached)),
          fmt::format("equal results on all rails indicate the host: compare its BIOS settings, "
                      "PCIe width, NUMA and clocks with a good node; then `muster rma {}`",
                      node.name.str())};
}

/// Of the host network: what its nodes share, of which the fabric is no part.
Told tellRack(const Site& site, const Culprit& culprit) {
  const auto rack = fmt::format("rack {}", site.leaf_names[static_cast<std::size_t>(culprit.a)]);
  if (culprit.kind == CulpritKind::Uplinks)
    return {fmt::format("the way from {}", rack),
            fmt::format("paths from here to several other racks reach {}; its nodes are good among "
                        "themselves",
                        percent(culprit.reached)),
            "read speed and error counters of what joins this rack's host network to the others"};
  return {rack, fmt::format("its nodes reach {} of what others do", percent(culprit.reached)),
          "what they share is likelier than so many nodes: the rack's switch of the host network "
          "and its uplinks, power, their settings; the fabric took no part in these tests"};
}

Told tellPair(const Site& site, const Culprit& culprit) {
  const auto &a = site.nodes[static_cast<std::size_t>(culprit.a)],
             &b = site.nodes[static_cast<std::size_t>(culprit.b)];
  const auto what = fmt::format("only these two reach {} together; each is good with others",
                                percent(culprit.reached));
  if (site.over_host_network)
    return {fmt::format("{} with {}", a.name.str(), b.name.str()), what,
            "look at route, neighbour tables and firewall rules between them on the host network"};
  return {fmt::format("{} with {}, rail {}", a.name.str(), b.name.str(), culprit.rail), what,
          "look at the route between them (ibtracert) and at their path records and neighbour "
          "tables; restart the RDMA driver of one of them"};
}

Told tellNic(const Site& site, const Culprit& culprit) {
  const auto& node = site.nodes[static_cast<std::size_t>(culprit.a)];
  std::string cable = "its cable";
  if (site.leaves_are_switches)
    cable = fmt::format(
        "the cable to {} port {}",
        switchWord(site, site.layout.leaf[static_cast<std::size_t>(culprit.a)], culprit.rail),
        node.leaf_port);
  if (culprit.bad > 0)
    return {
        fmt::format("{} {}", node.name.str(), railWord(node, culprit.rail)), oftenBad(culprit),
        fmt::format("an intermittent fault: read the port's error and link-down counters, reseat "
                    "{}, keep the node out of the pool, and run the isolation again",
                    cable)};
  return {fmt::format("{} {}", node.name.str(), railWord(node, culprit.rail)),
          fmt::format("reaches {} of its peers; the node's other rails are good",
                      percent(culprit.reached)),
          fmt::format("read the port's error counters; swap {} with a neighbour's: if the fault "
                      "moves it is the cable, if it stays with the node the NIC (or the GPU and "
                      "PCIe slot behind it), else the switch port",
                      cable)};
}

}  // namespace

Result<Site> siteOf(const inventory::Cluster& cluster, const std::vector<NodeName>& nodes,
                    const gateway::AgentGateway& agents, const Engine& engine) {
  Site site;
  site.over_host_network = engine.kind == EngineKind::Tcp;
  std::vector<std::string> silent;
  std::optional<std::string> fabric;
  std::size_t rails = std::string::npos;
  Places places;
  for (const auto& [on, declared] : cluster.fabrics)
    places[on] = inventory::placesOn(cluster, declared);
  for (const auto& name : nodes) {
    const auto* node = cluster.findNode(name);
    if (!node)
      return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", name.str()));
    const auto& own = cluster.profileOf(*node).fabric;
    if (fabric && *fabric != own)
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("{} is on fabric '{}', {} on '{}'; isolate the nodes of one fabric at a time",
                      nodes.front().str(), *fabric, name.str(), own));
    fabric = own;
    SiteNode made{name, node->address.str(), railsOf(cluster, agents, *node, engine), 0};
    if (made.devices.empty()) {
      silent.push_back(name.str());
      continue;
    }
    if (!cluster.profileOf(*node).other_fabrics.empty())
      made.hcas = fmt::format("={}", fmt::join(railDevicesOf(cluster, *node, agents), ","));
    rails = std::min(rails, made.devices.size());
    site.rails_are_nics =
        site.rails_are_nics &&
        (engine.kind == EngineKind::Rdma || made.devices == railDevicesOf(cluster, *node, agents));
    placeNode(cluster, places, *node, made, site);
    site.nodes.push_back(std::move(made));
  }
  if (!silent.empty())
    return fail(ErrorCode::Unavailable,
                fmt::format("no RDMA device is reported by the installed system of {}; leave them "
                            "out (--nodes) or see `muster why {}`",
                            fmt::join(silent, ", "), silent.front()));
  if (site.nodes.size() < 2)
    return fail(ErrorCode::InvalidInput,
                "isolation compares nodes with each other: name at least two, better four");
  site.layout.rails = static_cast<int>(rails);
  site.fabric = fabric.value_or("");
  if (const auto found = cluster.fabrics.find(site.fabric); found != cluster.fabrics.end())
    site.link = pairLink(&found->second);
  return site;
}

std::optional<double> leastGbitsOf(const Site& site, EngineKind engine) {
  constexpr double kOfNccl = 0.75;
  if (engine == EngineKind::Tcp || site.nodes.empty()) return std::nullopt;
  const auto& device = site.nodes.front().devices.front();
  const double floor = rdmaFloorGbits(device, site.link);
  if (engine == EngineKind::Rdma) return floor;
  if (site.link.empty() || !site.rails_are_nics) return std::nullopt;
  return kOfNccl * floor;
}

void useRoutes(Site& site, SiteRoutes routes) {
  site.routes = std::make_shared<const SiteRoutes>(std::move(routes));
  site.layout.cables = [kept = site.routes](int a, int b, int rail) {
    return kept->between(a, b, rail);
  };
}

nlohmann::json siteToJson(const Site& site) {
  auto nodes = nlohmann::json::array();
  for (std::size_t n = 0; n < site.nodes.size(); ++n) {
    const auto& node = site.nodes[n];
    nodes.push_back({{"name", node.name.str()},
                     {"address", node.address},
                     {"devices", node.devices},
                     {"leaf", site.layout.leaf[n]},
                     {"pod", site.layout.pod[n]},
                     {"leaf_port", node.leaf_port},
                     {"hcas", node.hcas}});
  }
  nlohmann::json out{{"rails", site.layout.rails},
                     {"nodes", std::move(nodes)},
                     {"leaf_names", site.leaf_names},
                     {"leaves_are_switches", site.leaves_are_switches},
                     {"over_host_network", site.over_host_network},
                     {"link", site.link},
                     {"fabric", site.fabric}};
  if (site.routes) out["routes"] = toJson(*site.routes);
  return out;
}

Result<Site> siteFromJson(const nlohmann::json& json) {
  try {
    Site site;
    site.layout.rails = json.at("rails").get<int>();
    site.leaf_names = json.at("leaf_names").get<std::vector<std::string>>();
    site.leaves_are_switches = json.at("leaves_are_switches").get<bool>();
    site.over_host_network = json.value("over_host_network", false);
    site.link = json.at("link").get<std::string>();
    site.fabric = json.value("fabric", "");
    for (const auto& each : json.at("nodes")) {
      site.nodes.push_back({NodeName(each.at("name").get<std::string>()),
                            each.at("address").get<std::string>(),
                            each.at("devices").get<std::vector<std::string>>(),
                            each.at("leaf_port").get<int>(), each.value("hcas", "")});
      site.layout.leaf.push_back(each.at("leaf").get<int>());
      site.layout.pod.push_back(each.at("pod").get<int>());
      const auto leaf = site.layout.leaf.back();
      if (leaf < 0 || leaf >= static_cast<int>(site.leaf_names.size()) ||
          site.nodes.back().devices.size() < static_cast<std::size_t>(site.layout.rails))
        return fail(ErrorCode::Corrupt, "the stored site of the isolation is invalid");
    }
    if (site.nodes.size() < 2 || site.layout.rails < 1)
      return fail(ErrorCode::Corrupt, "the stored site of the isolation is invalid");
    if (const auto kept = json.find("routes"); kept != json.end()) {
      auto routes = routesFromJson(*kept);
      if (!routes.fit(site.nodes.size(), site.layout.rails))
        return fail(ErrorCode::Corrupt, "the stored routes of the isolation are invalid");
      useRoutes(site, std::move(routes));
    }
    return site;
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the stored site of the isolation cannot be read: {}", error.what()));
  }
}

Told tell(const Site& site, const Culprit& culprit) {
  if (site.over_host_network &&
      (culprit.kind == CulpritKind::Leaf || culprit.kind == CulpritKind::Uplinks))
    return tellRack(site, culprit);
  switch (culprit.kind) {
    case CulpritKind::Node:
      return tellNode(site, culprit);
    case CulpritKind::Nic:
      return tellNic(site, culprit);
    case CulpritKind::Leaf:
      return {switchWord(site, culprit.a, culprit.rail),
              fmt::format("its nodes reach {} of what others do{}", percent(culprit.reached),
                          culprit.rail >= 0 ? fmt::format(" on rail {}", culprit.rail) : ""),
              "one switch is likelier than so many cables: check its firmware, power, temperature "
              "and error counters"};
    case CulpritKind::Rail:
      if (culprit.between)
        return {
            fmt::format("rail {} between its leaves", culprit.rail),
            fmt::format("reaches {} of what the other rails do between leaves; within each "
                        "leaf it is as fast as they are",
                        percent(culprit.reached)),
            "NICs and leaves are good: compare this rail's uplinks and spines with another "
            "rail's (cables, link speed, routing; `muster fabric diff`, `muster fabric health`)"};
      return {fmt::format("rail {}", culprit.rail),
              fmt::format("reaches {} of what the other rails do, on all nodes",
                          percent(culprit.reached)),
              "compare the configuration of this rail's NICs and switches with another rail's "
              "(link speed, MTU, firmware, routing)"};
    case CulpritKind::Cable:
      return {fmt::format("cable {}, rail {}",
                          site.routes ? site.routes->cables[static_cast<std::size_t>(culprit.a)]
                                      : std::to_string(culprit.a),
                          culprit.rail),
              fmt::format("every path over it reaches {}", percent(culprit.reached)),
              "read the error counters at both ends, reseat it, then replace it"};
    case CulpritKind::Uplinks:
      return {fmt::format("uplinks of {}", switchWord(site, culprit.a, culprit.rail)),
              fmt::format("paths from here to several other leaves reach {}; its nodes are good "
                          "among themselves",
                          percent(culprit.reached)),
              "read the error counters of this switch's uplinks (`muster fabric diff`): the one "
              "whose counter grows under load is it"};
    case CulpritKind::Pair:
      return tellPair(site, culprit);
    case CulpritKind::Fleet:
      return {"all nodes",
              fmt::format("typically reach {} of the declared rate", percent(culprit.reached)),
              "what is common to all is wrong: link speed, MTU, driver, PCIe settings, or the "
              "declared link of the fabric"};
  }
  return {};
}

std::string toText(const Site& site, const Verdict& verdict) {
  std::ostringstream out;
  out << fmt::format(
      "{} nodes, {} rail{}: {} tests in {} rounds; typical {:.4g} Gb/s, noise {:.2f} %\n",
      site.nodes.size(), site.layout.rails, site.layout.rails == 1 ? "" : "s", verdict.tests,
      verdict.rounds, verdict.typical_gbits, 100 * verdict.noise);
  for (const auto& culprit : verdict.culprits) {
    const auto told = tell(site, culprit);
    out << fmt::format("\n{} ({}, confidence {:.2f} %)\n  {}\n", told.subject,
                       toString(culprit.kind), 100 * culprit.confidence, told.what);
    std::vector<std::string> seen;
    for (const auto& [a, b] : culprit.seen)
      seen.push_back(fmt::format("{}-{}", site.nodes[static_cast<std::size_t>(a)].name.str(),
                                 site.nodes[static_cast<std::size_t>(b)].name.str()));
    if (!seen.empty()) out << fmt::format("  seen in {}\n", fmt::join(seen, ", "));
    out << "  next: " << told.next << '\n';
  }
  for (const auto& unclear : verdict.unclear) {
    if (unclear.others == kToldBefore) continue;
    out << fmt::format(
        "\nunclear: {}{}{}{}: {}\n",
        unclear.a < 0 ? "all nodes" : site.nodes[static_cast<std::size_t>(unclear.a)].name.str(),
        unclear.b >= 0 ? " with " + site.nodes[static_cast<std::size_t>(unclear.b)].name.str() : "",
        unclear.others ? fmt::format(" and {} others", unclear.others) : "",
        site.layout.rails > 1 && unclear.rail >= 0 ? fmt::format(" rail {}", unclear.rail) : "",
        unclear.why);
  }
  out << fmt::format("\n{} of {} nodes are cleared on every rail.\n", verdict.cleared.size(),
                     site.nodes.size());
  if (!verdict.good.empty() && verdict.culprits.empty())
    out << fmt::format(
        "{} {} good in {} rounds. That excludes a fault that is always there; one that makes a "
        "node "
        "bad in three of ten rounds is missed in {:.2g} % of such runs. To clear them takes {} "
        "rounds: the same without --until good.\n",
        verdict.good.size(), verdict.good.size() == 1 ? "node was" : "nodes were",
        verdict.good_rounds, 100 * missedWith(verdict.good_rounds), kClearRounds);
  else if (!verdict.good.empty())
    out << fmt::format(
        "{} {} good in every test. To clear them takes {} rounds without a culprit, because a "
        "fault "
        "may come and go: run the isolation again after the repair.\n",
        verdict.good.size(), verdict.good.size() == 1 ? "node was" : "nodes were", kClearRounds);
  return out.str();
}

nlohmann::json toJson(const Site& site, const Verdict& verdict) {
  using nlohmann::json;
  const auto name = [&](int node) { return site.nodes[static_cast<std::size_t>(node)].name.str(); };
  json culprits = json::array(), unclear = json::array(), cleared = json::array(),
       good = json::array();
  for (const auto& culprit : verdict.culprits) {
    const auto told = tell(site, culprit);
    json seen = json::array(), each{{"kind", toString(culprit.kind)},
                                    {"subject", told.subject},
                                    {"what", told.what},
                                    {"next", told.next},
                                    {"reached", culprit.reached},
                                    {"confidence", culprit.confidence},
                                    {"fresh_tests", culprit.tests}};
    for (const auto& [a, b] : culprit.seen) seen.push_back({name(a), name(b)});
    each["seen"] = std::move(seen);
    if (culprit.between) each["between_leaves"] = true;
    if (culprit.rail >= 0) each["rail"] = culprit.rail;
    if (culprit.kind == CulpritKind::Node || culprit.kind == CulpritKind::Nic ||
        culprit.kind == CulpritKind::Pair)
      each["node"] = name(culprit.a);
    if (culprit.kind == CulpritKind::Cable && site.routes)
      each["cable"] = site.routes->cables[static_cast<std::size_t>(culprit.a)];
    if (culprit.kind == CulpritKind::Pair) each["with"] = name(culprit.b);
    culprits.push_back(std::move(each));
  }
  for (const auto& each : verdict.unclear) {
    unclear.push_back({{"node", each.a < 0 ? json() : json(name(each.a))},
                       {"rail", each.rail},
                       {"why", each.why}});
    if (each.b >= 0) unclear.back()["with"] = name(each.b);
    if (each.others > 0) unclear.back()["others"] = each.others;
  }
  for (const int node : verdict.cleared) cleared.push_back(name(node));
  for (const int node : verdict.good) good.push_back(name(node));
  return {{"culprits", culprits},
          {"unclear", unclear},
          {"cleared", cleared},
          {"good", good},
          {"good_rounds", verdict.good_rounds},
          {"rounds", verdict.rounds},
          {"tests", verdict.tests},
          {"typical_gbits", verdict.typical_gbits},
          {"noise", verdict.noise}};
}

}  // namespace muster::validate::isolate
