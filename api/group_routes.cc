// SPDX-License-Identifier: Apache-2.0
// racks, pools, profiles: counts of the nodes in each.
#include "api/answers.h"
#include "api/rack_power.h"
#include "api/schema.h"
#include "bmc/health_watch.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "monitor/breakers.h"
#include "validate/power_budget.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

namespace muster::api {
namespace {

using inventory::Node;

struct Counts {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> states;
  std::size_t with_findings = 0, stale = 0;

  void add(const app::NodeStatus& node) {
    names.push_back(node.node);
    ++states[node.state];
    with_findings += node.findings > 0;
    stale += !node.stale.empty();
  }
  nlohmann::json json() const {
    return {{"nodes", names.size()},
            {"hostlist", inventory::foldHostlist(names)},
            {"states", states},
            {"with_findings", with_findings},
            {"stale", stale}};
  }
};

struct Groups {
  app::Session& session;
  WallTime as_of;
  std::map<std::string, Counts> by_name;
};

/// Of the nodes that the caller sees; who sees the whole site sees empty groups too.
std::expected<Groups, Problem> groupsBy(SiteReader& reader, const Call& call,
                                        const std::function<std::string(const Node&)>& key) {
  TRY(session, reader.session());
  TRY(fleet, reader.fleet());
  Groups out{*session, fleet->as_of, {}};
  const auto& cluster = session->cluster();
  for (const auto& row : fleet->status.nodes) {
    const auto* node = cluster.findNode(NodeName(row.node));
    if (!node || !call.scope.has(cluster, *node)) continue;
    if (const auto name = key(*node); !name.empty()) out.by_name[name].add(row);
  }
  return out;
}

Answer answerOf(nlohmann::json items, WallTime as_of) {
  auto out = list(std::move(items));
  out.as_of = as_of;
  return out;
}

/// What its machines draw, as their BMCs were read last; older than a few readings it is unknown.
Reply rackPower(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  const auto& cluster = session->cluster();
  const auto rack = call.text("rack");
  RackPower power;
  for (const auto& node : cluster.nodes) {
    if (node.rack != rack) continue;
    TRY(facts, reader.store().factsOf(lifecycle::Subject(node.name)));  // as they are now
    const auto health = std::ranges::find(facts, bmc::kBmcHealthFacet,
                                          [](const auto& each) { return each.facet.str(); });
    power.add(cluster, node, health == facts.end() ? nullptr : &*health, reader.now());
  }
  if (power.nodes() == 0)
    return std::unexpected(
        Problem(404, "not-found", "no node of the inventory is in rack " + rack));
  auto readings = nlohmann::json::array();
  for (const auto& each : power.readings)
    readings.push_back({{"node", each.node},
                        {"watts", each.watts},
                        {"of", each.of},
                        {"at", muster::toString(each.at)}});
  auto out = powerJson(power, validate::PowerBudget(cluster).limitOf(rack));
  out.update({{"rack", rack},
              {"nodes", power.nodes()},
              {"readings", std::move(readings)},
              {"unread", power.unread}});
  return Answer{200, std::move(out)};
}

Reply racks(SiteReader& reader, const Call& call) {
  TRY(groups, groupsBy(reader, call, [](const Node& node) { return node.rack; }));
  const auto& cluster = groups.session.cluster();
  const validate::PowerBudget budget(cluster);
  TRY(fleet, reader.fleet());
  const auto powers = call.scope.isSite() ? powerByRack(cluster, fleet->view.facts(), reader.now())
                                          : std::map<std::string, RackPower>{};
  auto items = nlohmann::json::array();
  for (const auto& [name, counts] : groups.by_name) {
    items.push_back(counts.json());
    items.back()["rack"] = name;
    const auto power = powers.find(name);
    if (power == powers.end()) continue;
    const auto limit = budget.limitOf(name);
    if (!limit && power->second.readings.empty()) continue;
    auto& said = items.back()["power"] = powerJson(power->second, limit);
    said["read_nodes"] = power->second.readings.size();
  }
  return answerOf(std::move(items), groups.as_of);
}

nlohmann::json breakerJson(const std::string& pool, const monitor::BreakerState& state) {
  std::vector<std::string> names;
  for (const auto& node : state.nodes) names.push_back(node.str());
  const auto count = names.size();
  return {
      {"pool", pool}, {"nodes", inventory::foldHostlist(std::move(names))}, {"nodes_count", count}};
}

std::expected<std::vector<nlohmann::json>, Problem> poolItems(SiteReader& reader, const Call& call,
                                                              WallTime& as_of) {
  TRY(session, reader.session());
  TRY(groups, groupsBy(reader, call, [session](const Node& node) {
        return session->cluster().profileOf(node).pool;
      }));
  TRY(breakers, monitor::Breakers(reader.store()).read());
  std::vector<nlohmann::json> out;
  for (const auto& [name, pool] : session->cluster().pools) {
    const auto counts = groups.by_name.find(name);
    if (counts == groups.by_name.end() && !call.scope.isSite()) continue;
    auto item = (counts == groups.by_name.end() ? Counts{} : counts->second).json();
    item["pool"] = name;
    item["scheduler"] = pool.slurm ? "slurm" : "kubernetes";
    if (pool.slurm) item["partition"] = pool.slurm->partition;
    if (const auto open = breakers.find(name); open != breakers.end() && open->second.open)
      item["breaker"] = breakerJson(name, open->second);
    out.push_back(std::move(item));
  }
  as_of = groups.as_of;
  return out;
}

Reply pools(SiteReader& reader, const Call& call) {
  WallTime as_of{};
  TRY(items, poolItems(reader, call, as_of));
  return answerOf(nlohmann::json(std::move(items)), as_of);
}

Reply pool(SiteReader& reader, const Call& call) {
  WallTime as_of{};
  TRY(items, poolItems(reader, call, as_of));
  std::string names;
  for (auto& item : items) {
    if (item["pool"] == call.text("pool")) return Answer{200, std::move(item)};
    names += (names.empty() ? "" : ", ") + item["pool"].get<std::string>();
  }
  return std::unexpected(noSuch("pool", call.text("pool"), names));
}

Reply profiles(SiteReader& reader, const Call& call) {
  TRY(groups, groupsBy(reader, call, [](const Node& node) { return node.profile; }));
  auto items = nlohmann::json::array();
  for (const auto& [name, profile] : groups.session.cluster().profiles) {
    const auto counts = groups.by_name.find(name);
    if (counts == groups.by_name.end() && !call.scope.isSite()) continue;
    items.push_back((counts == groups.by_name.end() ? Counts{} : counts->second).json());
    items.back().update({{"profile", name},
                         {"image", profile.image},
                         {"drivers", profile.drivers},
                         {"firmware", profile.firmware},
                         {"gates", profile.gates},
                         {"pool", profile.pool},
                         {"fabric", profile.fabric}});
    if (!profile.other_fabrics.empty()) items.back()["other_fabrics"] = profile.other_fabrics;
  }
  return answerOf(std::move(items), groups.as_of);
}

Reply breakers(SiteReader& reader, const Call&) {
  TRY(states, monitor::Breakers(reader.store()).read());
  auto items = nlohmann::json::array();
  for (const auto& [pool, state] : states)
    if (state.open) items.push_back(breakerJson(pool, state));
  return list(std::move(items));
}

}  // namespace

void addGroupRoutes(std::vector<ApiRoute>& routes) {
  const nlohmann::json as_of = {{"as_of", {{"type", "string"}, {"format", "date-time"}}}};
  const auto add = [&](std::string path, std::string_view summary, nlohmann::json schema, Act act,
                       Reach reach = Reach::Scoped) {
    routes.push_back(lookRoute(std::move(path), reach, summary, std::move(schema), std::move(act)));
  };
  add("/racks", "Racks, and the states of the nodes in them", listOf("Rack", as_of), racks);
  add("/racks/{rack}/power", "What a rack's machines draw, by their BMCs, beside what it may draw",
      refTo("RackPower"), rackPower, Reach::Site);
  routes.back().path_fields = {{"rack", Kind::Text, "A rack of the inventory", true}};
  add("/pools", "Pools, and the states of their nodes", listOf("Pool", as_of), pools);
  add("/pools/{pool}", "One pool", refTo("Pool"), pool);
  routes.back().path_fields = {{"pool", Kind::Text, "A pool of the inventory", true}};
  add("/profiles", "Profiles, and the states of their nodes", listOf("Profile", as_of), profiles);
  add("/breakers", "Circuit breakers that are open", listOf("Breaker"), breakers, Reach::Site);
}

}  // namespace muster::api
