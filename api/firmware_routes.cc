// SPDX-License-Identifier: Apache-2.0
// Firmware of the site: component by component, declared against found.
#include "api/answers.h"
#include "api/kept_answer.h"
#include "api/schema.h"
#include "app/firmware/firmware_baselines.h"
#include "app/firmware/firmware_matrix.h"
#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"

#include <memory>

namespace muster::api {
namespace {

using Cells = std::vector<nlohmann::json>;

Result<Cells> cellsOf(app::Session& session) {
  TRY(facts, session.store().facts());
  Cells out;
  for (const auto& cell : app::firmwareMatrix(session.cluster(), facts))
    out.push_back({{"profile", cell.profile},
                   {"baseline", cell.baseline},
                   {"component", cell.component},
                   {"place", cell.place},
                   {"declared", cell.declared},
                   {"found", cell.found},
                   {"state", wordOf(cell.state)},
                   {"through", cell.through},
                   {"staged", cell.staged},
                   {"why", cell.why},
                   {"nodes", inventory::foldHostlist(cell.nodes)},
                   {"nodes_count", cell.nodes.size()}});
  return out;
}

Reply firmware(SiteReader& reader, const Call& call, Kept<Cells>& kept) {
  TRY(session, reader.session());
  const auto key = muster::toString(reader.inUseSince());
  if (const auto* known = kept.find(key)) return page(call, *known);
  const auto began = std::chrono::steady_clock::now();
  TRY(cells, cellsOf(*session));
  return page(call, kept.keep(key, began, std::move(cells)));
}

/// Paths are computed for the page alone.
Reply upgrades(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  const auto& cluster = session->cluster();
  TRY(named, namedNodes(*session, call));
  std::vector<nlohmann::json> wanted;
  for (const auto& node : app::nodesWithBaseline(cluster))
    if (sees(cluster, call, node.str()) && (named.empty() || named.contains(node.str())))
      wanted.emplace_back(node.str());
  TRY(out, page(call, std::move(wanted)));
  std::vector<NodeName> nodes;
  for (const auto& item : out.body["items"]) nodes.emplace_back(item.get<std::string>());
  TRY(facts, reader.store().facts());
  auto items = nlohmann::json::array();
  for (const auto& each : app::firmwareUpgrades(cluster, facts, nodes))
    items.push_back(toJson(each));
  out.body["items"] = std::move(items);
  return out;
}

}  // namespace

void addFirmwareRoutes(std::vector<ApiRoute>& routes) {
  auto kept = std::make_shared<Kept<Cells>>();  // the route's own, of the reader thread
  routes.push_back(
      {"GET",
       "/firmware",
       Verb::Look,
       Reach::Site,
       "Components of every profile's baseline, declared against found",
       {},
       withPages({}),
       {},
       listOf("FirmwareCell"),
       200,
       [kept](SiteReader& reader, const Call& call) { return firmware(reader, call, *kept); }});
  routes.push_back({"GET",
                    "/firmware/plan",
                    Verb::Look,
                    Reach::Scoped,
                    "Each node's path to its baseline: order, resets, AC cycles, time",
                    {},
                    withPages({{"nodes", Kind::Hostlist, "These only"}}),
                    {},
                    listOf("FirmwareUpgrade"),
                    200,
                    upgrades});
}

}  // namespace muster::api
