// SPDX-License-Identifier: Apache-2.0
// The site as a whole, who asks, the inventory in use, health and metrics.
#include "api/answers.h"
#include "api/metrics.h"
#include "api/schema.h"
#include "app/runs/runs.h"
#include "app/site/actor.h"
#include "app/site/leadership.h"
#include "base/version.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "lifecycle/rollout/record.h"

#include <set>

namespace muster::api {
namespace {

Reply site(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(fleet, reader.fleet());
  TRY(ends, reader.store().lastEvents(1, nullptr));
  TRY(found, reader.store().findings(nullptr));
  const auto& cluster = session->cluster();
  std::map<std::string, std::size_t> states;
  std::set<std::string> racks, pools;
  std::size_t nodes = 0, with_findings = 0, stale = 0, findings = 0;
  for (const auto& row : fleet->status.nodes) {
    const auto* node = cluster.findNode(NodeName(row.node));
    if (!node || !call.scope.has(cluster, *node)) continue;
    ++nodes;
    ++states[row.state];
    with_findings += row.findings > 0;
    stale += !row.stale.empty();
    racks.insert(node->rack);
  }
  for (const auto& finding : found) findings += sees(cluster, call, finding.facet.subject.str());
  const auto& monitor = fleet->status.monitor;
  Answer out{200,
             {{"name", cluster.name},
              {"version", kVersion},
              {"host", app::hostName()},
              {"nodes", nodes},
              {"states", states},
              {"with_findings", with_findings},
              {"stale", stale},
              {"findings", findings},
              {"racks", racks.size()},
              {"pools", cluster.pools.size()},
              {"monitor",
               {{"running", monitor.running},
                {"breaker_open", monitor.tripped},
                {"text", monitor.text},
                {"holder", monitor.holder}}},
              {"several_controllers", fleet->status.several_controllers},
              {"inventory_digest", cluster.digest},
              {"last_event", ends.empty() ? 0 : ends.back().sequence}}};
  if (fleet->status.several_controllers && fleet->status.leader && *fleet->status.leader) {
    const auto& leader = **fleet->status.leader;
    out.body["leader"] = {{"holder", leader.holder}, {"address", leader.address}};
    if (!leader.api_url.empty()) out.body["leader"]["url"] = leader.api_url;
  }
  if (const auto open = lifecycle::RolloutRecord::current(reader.store());
      open && open->rollout().isOpen())
    out.body["rollout"] = open->rollout().id;
  out.body["overrides"] = nlohmann::json::array();
  out.body["access_problems"] = nlohmann::json::array();
  if (call.scope.isSite() && may(call.identity.role, Verb::Admin))
    out.body["access_problems"] = reader.accessProblems();
  if (call.scope.isSite()) {  // runs are for who has the whole site
    TRY(runs, app::openRunStore(reader.options()));
    TRY(loud, app::loudOverrides(*runs));
    out.body["overrides"] = std::move(loud);
  }
  out.as_of = fleet->as_of;
  return out;
}

Reply me(SiteReader&, const Call& call) {
  const auto& who = call.identity;
  auto verbs = nlohmann::json::array();
  for (const auto verb : verbsOf(who.role)) verbs.push_back(toString(verb));
  Answer out{200,
             {{"principal", who.principal},
              {"way", toString(who.way)},
              {"role", toString(who.role)},
              {"verbs", std::move(verbs)},
              {"scope", toJson(who.scope)}}};
  if (!who.person.empty()) out.body["person"] = who.person;
  if (who.expires_at) out.body["expires_at"] = muster::toString(*who.expires_at);
  return out;
}

Reply inventory(SiteReader& reader, const Call&) {
  TRY(session, reader.session());
  const auto& cluster = session->cluster();
  const auto on_disk = app::loadDeclared(reader.options());
  auto diagnostics = nlohmann::json::array();
  for (const auto& each : on_disk.diagnostics.all()) diagnostics.push_back(diagnosticJson(each));
  const auto& digest = session->live->declaredDigest();
  return Answer{200,
                {{"name", cluster.name},
                 {"file", reader.options().inventory.string()},
                 {"digest", digest},
                 {"nodes", cluster.nodes.size()},
                 {"in_use_since", muster::toString(reader.inUseSince())},
                 {"file_differs", !on_disk.cluster || on_disk.cluster->digest != digest},
                 {"diagnostics", std::move(diagnostics)}}};
}

Reply health(SiteReader&, const Call&) {
  return Answer{200, {{"status", "ok"}, {"detail", "muster answers"}}};
}

Reply readiness(SiteReader& reader, const Call&) {
  const auto session = reader.session();
  const bool read = session && reader.store().auditEnds();
  if (read)
    return Answer{200, {{"status", "ok"}, {"detail", "the store and the inventory can be read"}}};
  // Anybody may ask: what is wrong in detail is for who may look.
  return Answer{
      503,
      {{"status", "unavailable"},
       {"detail", session ? "the store cannot be read" : "no good inventory has been read yet"}}};
}

Reply metrics(SiteReader& reader, const Call& call) {
  TRY(text, metricsText(reader, call));
  Answer out;
  out.headers["Content-Type"] = std::string(kMetricsType);
  out.plain = std::move(text);
  return out;
}

Reply description(SiteReader&, const Call&) {
  static const auto text = openApi(apiRoutes());
  return Answer{200, text};
}

}  // namespace

void addSiteRoutes(std::vector<ApiRoute>& routes) {
  const auto add = [&](std::string path, Reach reach, std::string_view summary,
                       nlohmann::json schema, Act act) {
    routes.push_back(lookRoute(std::move(path), reach, summary, std::move(schema), std::move(act)));
  };
  add("/site", Reach::Scoped, "The site: counts by state, who watches it", refTo("Site"), site);
  add("/me", Reach::Scoped, "Who asks, and what they may do", refTo("Me"), me);
  add("/inventory", Reach::Site, "The inventory in use, and what is wrong with the file",
      refTo("Inventory"), inventory);
  add("/healthz", Reach::Anybody, "Whether the process answers", refTo("Health"), health);
  add("/readyz", Reach::Anybody, "Whether store and inventory can be read", refTo("Health"),
      readiness);
  add("/openapi.json", Reach::Anybody, "This description", {{"type", "object"}}, description);
  add("/metrics", Reach::Site, "Prometheus metrics", nlohmann::json(), metrics);
  routes.back().content_type = kMetricsType;
}

namespace {

/// The nearest resource at or above the order's own path: "/runs/{id}" of "/runs/{id}/cancel".
Act resourceOf(const std::vector<ApiRoute>& routes, const ApiRoute& order) {
  const ApiRoute* nearest = nullptr;
  for (const auto& route : routes) {
    const bool is_above = order.path == route.path || order.path.starts_with(route.path + "/");
    if (route.method == "GET" && !route.is_stream && is_above &&
        (!nearest || route.path.size() > nearest->path.size()))
      nearest = &route;
  }
  return nearest ? nearest->act : Act();
}

}  // namespace

std::vector<ApiRoute> apiRoutes() {
  std::vector<ApiRoute> out;
  addSiteRoutes(out);
  addClientRoutes(out);
  addNodeRoutes(out);
  addBmcRoutes(out);
  addJournalRoutes(out);
  addCertificateRoutes(out);
  addGroupRoutes(out);
  addRecordRoutes(out);
  addOrderRoutes(out);
  addRunRoutes(out);
  addValidationRoutes(out);
  addPlanRoutes(out);
  addFirmwareRoutes(out);
  addFabricRoutes(out);
  addDiscoveryRoutes(out);
  addConsoleRoutes(out);
  addLocatorRoutes(out);
  addPowerRoutes(out);
  addTokenRoutes(out);
  addSettingsRoutes(out);
  for (auto& route : out)
    if (route.method != "GET") route.resource = resourceOf(out, route);
  return out;
}

}  // namespace muster::api
