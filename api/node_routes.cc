// SPDX-License-Identifier: Apache-2.0
// nodes, and what is known of one.
#include "api/answers.h"
#include "api/schema.h"
#include "app/nodes/erase.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/audit/history.h"
#include "lifecycle/model/json.h"
#include "lifecycle/model/node_state.h"
#include "lifecycle/model/pool_hold.h"

#include <algorithm>
#include <set>

namespace muster::api {
namespace {

using inventory::Node;
using lifecycle::Subject;

constexpr std::int64_t kHistoryLimit = 50, kMaxHistory = 10'000;
constexpr std::int64_t kEventsLimit = 100, kMaxEvents = 5'000;
constexpr std::int64_t kMeasurementDays = 90, kMaxDays = 3'660;

struct Filter {
  std::set<std::string> names;
  std::string rack, pool, profile, state, serial;
  bool with_findings = false;

  bool fits(const inventory::Cluster& cluster, const Node& node, const app::NodeStatus& row) const {
    return (names.empty() || names.contains(row.node)) && (rack.empty() || node.rack == rack) &&
           (profile.empty() || node.profile == profile) &&
           (pool.empty() || cluster.profileOf(node).pool == pool) &&
           (state.empty() || row.state == state) && (serial.empty() || node.serial == serial) &&
           (!with_findings || row.findings > 0);
  }
};

std::string namesOf(const auto& table) {
  std::string out;
  for (const auto& [name, value] : table) out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// A filter that names what the inventory does not have is a mistake and not an empty fleet.
std::expected<Filter, Problem> filterOf(app::Session& session, const Call& call) {
  const auto& cluster = session.cluster();
  Filter out{{},
             call.text("rack"),
             call.text("pool"),
             call.text("profile"),
             call.text("state"),
             call.text("serial"),
             call.flag("findings")};
  if (!out.pool.empty() && !cluster.pools.contains(out.pool))
    return std::unexpected(noSuch("pool", out.pool, namesOf(cluster.pools)));
  if (!out.profile.empty() && !cluster.profiles.contains(out.profile))
    return std::unexpected(noSuch("profile", out.profile, namesOf(cluster.profiles)));
  const bool is_rack = out.rack.empty() || std::ranges::find(cluster.nodes, out.rack,
                                                             &Node::rack) != cluster.nodes.end();
  if (!is_rack)
    return std::unexpected(
        Problem(404, "not-found", "no node of the inventory is in rack " + out.rack));
  TRY(names, namedNodes(session, call));
  out.names = std::move(names);
  return out;
}

Reply nodes(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(filter, filterOf(*session, call));
  TRY(fleet, reader.fleet());
  const auto& cluster = session->cluster();
  const auto limit = static_cast<std::size_t>(call.integer("limit", kDefaultPage));
  const auto cursor = call.text("cursor");
  if (!cursor.empty() && !fleet->index.contains(cursor))
    return std::unexpected(Problem(400, "invalid-input", "\"cursor\" is not one of this list",
                                   "begin without cursor"));
  const auto begin = cursor.empty() ? 0 : fleet->index.at(cursor) + 1;
  // Rows are printed when they change: a listing of ten thousand only copies them.
  std::string items;
  std::size_t total = 0, count = 0;
  std::string last;
  bool more = false;
  for (std::size_t place = 0; place < fleet->status.nodes.size(); ++place) {
    const auto& row = fleet->status.nodes[place];
    const auto& node = cluster.nodes[place];
    if (!call.scope.has(cluster, node) || !filter.fits(cluster, node, row)) continue;
    ++total;
    if (place < begin) continue;
    more = count == limit;
    if (more) continue;
    if (count++ > 0) items += ',';
    items += fleet->printed[place].json;
    last = row.node;
  }
  if (total == 0 && !filter.state.empty() && !lifecycle::isNodeState(filter.state))
    return std::unexpected(
        Problem(400, "invalid-input",
                fmt::format("no node is in the state \"{}\"", printable(filter.state)),
                "there are: " + lifecycle::nodeStateWords()));
  Answer out;
  out.headers["Content-Type"] = "application/json";
  out.plain = "{\"items\":[" + std::move(items) + "]";
  if (more) *out.plain += ",\"next\":" + jsonText(nlohmann::json(last));
  *out.plain += fmt::format(",\"total\":{}}}", total);
  out.as_of = fleet->as_of;
  return out;
}

/// What the inventory says of it, and what people have.
std::expected<void, Problem> addDeclared(app::Session& session, const Node& node,
                                         nlohmann::json& out) {
  const auto& profile = session.cluster().profileOf(node);
  out.update({{"unit", node.unit},
              {"mac", node.mac.str()},
              {"address", node.address.str()},
              {"bmc", node.bmc.url},
              {"serial", node.serial},
              {"declared_image", profile.image},
              {"firmware", profile.firmware},
              {"drivers", profile.drivers},
              {"gates", profile.gates}});
  TRY(held, lifecycle::Quarantine(session.store()).find(node.name));
  if (held) out["quarantine"] = quarantineJson(node.name, *held);
  return {};
}

Reply node(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(declared, nodeOf(*session, call, call.text("name")));
  TRY(fleet, reader.fleet());
  const auto found = fleet->index.find(declared->name.str());
  if (found == fleet->index.end())
    return std::unexpected(Problem(Error(ErrorCode::Unavailable, "the node was not read yet")));
  Answer out{200, nodeJson(fleet->status.nodes[found->second],
                           session->cluster().profileOf(*declared).pool)};
  TRY_OK(addDeclared(*session, *declared, out.body));
  TRY(facts, session->store().factsOf(Subject(declared->name)));
  for (const auto& fact : facts)
    if (fact.facet.str() == lifecycle::kPoolHoldFacet && fact.value != "none") {
      TRY(holds, app::poolHolds(reader.options()));
      for (const auto& hold : holds.holds)
        if (hold.node == declared->name) out.body["hold"] = holdJson(hold);
    }
  return out;
}

Reply explain(SiteReader& reader, const Subject& subject) {
  TRY(session, reader.session());
  TRY(facts, reader.factsWith(subject));
  TRY(explained, app::explainSubject(*session, *facts, subject));
  TRY(json, parseJson(explained.toJson(), kKeptJson));
  return Answer{200, std::move(json)};
}

Reply why(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  return explain(reader, Subject(node->name));
}

Reply whyCluster(SiteReader& reader, const Call&) { return explain(reader, Subject::cluster()); }

Reply facts(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  TRY(known, session->store().factsOf(Subject(node->name)));
  auto items = nlohmann::json::array();
  for (const auto& fact : known) items.push_back(lifecycle::toJson(fact));
  return list(std::move(items));
}

Reply findingsOf(SiteReader& reader, const Subject& subject) {
  TRY(found, reader.store().findings(&subject));
  auto items = nlohmann::json::array();
  for (const auto& finding : found) items.push_back(lifecycle::toJson(finding));
  return list(std::move(items));
}

Reply findings(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  return findingsOf(reader, Subject(node->name));
}

Reply clusterFindings(SiteReader& reader, const Call&) {
  return findingsOf(reader, Subject::cluster());
}

Reply events(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  const Subject subject(node->name);
  TRY(found, reader.store().lastEvents(
                 static_cast<std::size_t>(call.integer("limit", kEventsLimit)), &subject));
  auto items = nlohmann::json::array();
  for (const auto& event : found) items.push_back(lifecycle::toJson(event));
  return list(std::move(items));
}

Reply history(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  auto found = lifecycle::historyOf(reader.store(), node->name.str(),
                                    static_cast<std::size_t>(call.integer("limit", kHistoryLimit)));
  if (!found && found.error().code() == ErrorCode::NotFound)  // nothing was ever done to it
    found = lifecycle::History{};
  if (!found) return std::unexpected(std::move(found).error());
  TRY(json, parseJson(found->toJson(), kKeptJson));
  return Answer{200, std::move(json)};
}

Reply measurements(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  const auto since = reader.now() - std::chrono::hours(24) * call.integer("days", kMeasurementDays);
  TRY(sets, session->controller->measurements().since(since));
  auto items = nlohmann::json::array();
  for (const auto& set : sets)
    if (set.node == node->name)
      items.push_back({{"at", muster::toString(set.at)},
                       {"origin", set.origin},
                       {"sku", set.sku},
                       {"rack", set.rack},
                       {"numbers", set.numbers}});
  return list(std::move(items));
}

Reply erasure(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  TRY(report, app::erasureReport(reader.options(), node->name));
  TRY(json, parseJson(report, kKeptJson));
  return Answer{200, std::move(json)};
}

}  // namespace

void addNodeRoutes(std::vector<ApiRoute>& routes) {
  const auto add = [&](std::string path, std::string_view summary, std::vector<Field> query,
                       nlohmann::json schema, Act act) {
    routes.push_back({"GET",
                      "/nodes/{name}" + path,
                      Verb::Look,
                      Reach::Scoped,
                      summary,
                      {kNameField},
                      std::move(query),
                      {},
                      std::move(schema),
                      200,
                      std::move(act)});
  };
  const Field limit{"limit", Kind::Integer, "How many at most", false, 1, kMaxEvents};
  routes.push_back({"GET",
                    "/nodes",
                    Verb::Look,
                    Reach::Scoped,
                    "The nodes and their states",
                    {},
                    withPages({{"nodes", Kind::Hostlist, "These only"},
                               {"rack", Kind::Text, "In this rack"},
                               {"pool", Kind::Text, "Declared for this pool"},
                               {"profile", Kind::Text, "Of this profile"},
                               {"state", Kind::Text, "In this state, as `state` says it"},
                               {"serial", Kind::Text, "With this serial number"},
                               {"findings", Kind::Boolean, "true: only those with open findings"}}),
                    {},
                    listOf("Node", {{"as_of", {{"type", "string"}, {"format", "date-time"}}}}),
                    200,
                    nodes});
  add("", "One node, and what is declared of it", {}, refTo("Node"), node);
  add("/why", "Expected, observed, evidence and next step", {}, refTo("Explanation"), why);
  add("/facts", "What was observed", {}, listOf("Fact"), facts);
  add("/findings", "What is wrong with it", {}, listOf("Finding"), findings);
  add("/events", "Its newest events, oldest first", {limit}, listOf("Event"), events);
  add("/history", "Who asked for what, and how each action ended",
      {{"limit", Kind::Integer, "How many at most", false, 1, kMaxHistory}}, refTo("History"),
      history);
  add("/erasure", "The report of the last erasure of its disks", {}, {{"type", "object"}}, erasure);
  add("/measurements", "What its gates have measured",
      {{"days", Kind::Integer, "Of this many days", false, 1, kMaxDays}}, listOf("Measurement"),
      measurements);
  routes.push_back({"GET",
                    "/cluster/why",
                    Verb::Look,
                    Reach::Site,
                    "The same of the cluster's own facets",
                    {},
                    {},
                    {},
                    refTo("Explanation"),
                    200,
                    whyCluster});
  routes.push_back({"GET",
                    "/cluster/findings",
                    Verb::Look,
                    Reach::Site,
                    "What is wrong with the cluster",
                    {},
                    {},
                    {},
                    listOf("Finding"),
                    200,
                    clusterFindings});
}

}  // namespace muster::api
