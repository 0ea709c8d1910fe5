// SPDX-License-Identifier: Apache-2.0
// Orders that are values in the store: the monitor, or the next plan, does what they say.
#include "api/answers.h"
#include "api/schema.h"
#include "app/controller/monitor_run.h"
#include "app/nodes/pool_holds.h"
#include "app/nodes/quarantine.h"
#include "app/nodes/wipe.h"
#include "app/site/effective_cluster.h"
#include "inventory/parse/hostlist.h"
#include "monitor/breakers.h"

namespace muster::api {
namespace {

const Field kNodes{"nodes", Kind::Hostlist, "Hostlist", true};
const Field kReason{"reason", Kind::Text, "Why; recorded in the log", true};

Reply quarantineAdd(SiteReader& reader, const Call& call) {
  TRY_OK(requireInScope(reader, call, call.text("nodes")));
  TRY(added,
      app::addToQuarantine(reader.optionsFor(call.actor), call.text("nodes"), call.text("reason")));
  auto items = nlohmann::json::array();
  for (const auto& each : added)
    items.push_back({{"node", each.node.str()}, {"is_new", each.is_new}, {"reason", each.reason}});
  return list(std::move(items));
}

Reply quarantineRemove(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  TRY_OK(app::removeFromQuarantine(reader.optionsFor(call.actor), node->name, call.text("reason")));
  return Answer{204, nullptr};
}

Reply holdsOverride(SiteReader& reader, const Call& call) {
  TRY_OK(requireInScope(reader, call, call.text("nodes")));
  TRY(holds, app::overridePoolHolds(reader.optionsFor(call.actor), call.text("nodes"),
                                    call.text("reason")));
  auto items = nlohmann::json::array();
  for (const auto& hold : holds) items.push_back(holdJson(hold));
  return list(std::move(items));
}

Reply breakersAcknowledge(SiteReader& reader, const Call& call) {
  TRY(closed, app::acknowledgeBreakers(reader.optionsFor(call.actor), call.text("reason")));
  auto items = nlohmann::json::array();
  for (const auto& [pool, state] : closed) {
    std::vector<std::string> names;
    for (const auto& node : state.nodes) names.push_back(node.str());
    const auto count = names.size();
    items.push_back({{"pool", pool},
                     {"nodes", inventory::foldHostlist(std::move(names))},
                     {"nodes_count", count}});
  }
  return list(std::move(items));
}

Reply wipeGrant(SiteReader& reader, const Call& call) {
  TRY_OK(requireInScope(reader, call, call.text("nodes")));
  TRY(granted, app::grantWipe(reader.optionsFor(call.actor),
                              {call.text("nodes"), call.text("reason"), call.flag("data")}));
  auto items = nlohmann::json::array();
  for (const auto& node : granted.nodes) items.push_back({{"node", node.str()}});
  auto out = list(std::move(items));
  out.body["has_storage_sets"] = granted.has_storage_sets;
  return out;
}

/// One with errors is refused with all of them, and the one in use stays.
Reply reload(SiteReader& reader, const Call& call) {
  const auto loaded = app::loadDeclared(reader.options());
  if (!loaded.cluster) {
    Problem problem(
        400, "invalid-input",
        fmt::format("{} has {}; the inventory as it was stays in use",
                    reader.options().inventory.string(), app::problemsText(loaded.diagnostics)),
        "correct the file, and ask again");
    problem.diagnostics = loaded.diagnostics.all();
    return std::unexpected(std::move(problem));
  }
  TRY_OK(app::addNote(reader.store(), {}, call.actor + " has the inventory read again"));
  reader.reload();
  app::requestReload();
  return Answer{202, {{"accepted", true}}, {{"Location", std::string(kBasePath) + "/inventory"}}};
}

}  // namespace

void addOrderRoutes(std::vector<ApiRoute>& routes) {
  const auto add = [&](std::string path, Verb verb, Reach reach, std::string_view summary,
                       std::vector<Field> body, nlohmann::json schema, int status, Act act) {
    routes.push_back({"POST",
                      std::move(path),
                      verb,
                      reach,
                      summary,
                      {},
                      {},
                      std::move(body),
                      std::move(schema),
                      status,
                      std::move(act)});
  };
  add("/quarantine", Verb::Hold, Reach::Scoped,
      "Keep nodes out of their pools until a person releases them", {kNodes, kReason},
      listOf("QuarantineOrder"), 200, quarantineAdd);
  add("/quarantine/{name}/remove", Verb::Hold, Reach::Scoped, "Release a node from quarantine",
      {kReason}, nlohmann::json(), 204, quarantineRemove);
  routes.back().path_fields = {kNameField};
  add("/holds/override", Verb::Hold, Reach::Scoped,
      "Permit that nodes are disturbed although a person has drained them", {kNodes, kReason},
      listOf("Hold"), 200, holdsOverride);
  add("/breakers/acknowledge", Verb::Hold, Reach::Site, "Close the circuit breakers", {kReason},
      listOf("Breaker"), 200, breakersAcknowledge);
  add("/wipe-grants", Verb::Wipe, Reach::Scoped, "Permit that disks are overwritten once",
      {kNodes, kReason, {"data", Kind::Boolean, "The disks of storage sets too"}},
      listOf("WipeGrant", {{"has_storage_sets", {{"type", "boolean"}}}}), 200, wipeGrant);
  add("/inventory/reload", Verb::Run, Reach::Site, "Read the inventory again", {},
      refTo("Accepted"), 202, reload);
  routes.back().needs_serving_host = true;  // by its process, from its files
}

}  // namespace muster::api
