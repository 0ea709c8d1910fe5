// SPDX-License-Identifier: Apache-2.0
#include "api/answers.h"

#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>

namespace muster::api {

std::vector<Field> withPages(std::vector<Field> fields) {
  fields.push_back({"limit", Kind::Integer, "Items of a page", false, 1, kMaxPage});
  fields.push_back({"cursor", Kind::Text, "Where the page begins: `next` of the page before"});
  return fields;
}

ApiRoute lookRoute(std::string path, Reach reach, std::string_view summary, nlohmann::json schema,
                   Act act) {
  return {"GET", std::move(path),   Verb::Look, reach,         summary, {}, {},
          {},    std::move(schema), 200,        std::move(act)};
}

nlohmann::json nodeJson(const app::NodeStatus& node, const std::string& pool_name) {
  auto stale = nlohmann::json::array();
  for (const auto& unread : node.stale) {
    stale.push_back({{"what", unread.what},
                     {"since", muster::toString(unread.since)},
                     {"code", unread.code},
                     {"reason", unread.text}});
    if (unread.last_read) stale.back()["last_read"] = muster::toString(*unread.last_read);
  }
  return {{"node", node.node},        {"state", node.state},     {"pool", node.pool},
          {"pool_name", pool_name},   {"image", node.image},     {"certificate", node.certificate},
          {"rack", node.rack},        {"profile", node.profile}, {"findings", node.findings},
          {"stale", std::move(stale)}};
}

std::string fold(const std::vector<NodeName>& nodes) {
  std::vector<std::string> names;
  for (const auto& node : nodes) names.push_back(node.str());
  return inventory::foldHostlist(std::move(names));
}

nlohmann::json impactJson(const lifecycle::PlanImpact& impact) {
  auto domains = nlohmann::json::array();
  for (const auto& each : impact.domains)
    domains.push_back({{"kind", toString(each.domain.kind)},
                       {"name", each.domain.name},
                       {"taken_out", each.taken_out},
                       {"already_out", each.already_out},
                       {"size", each.size},
                       {"limit", each.limit}});
  return {{"actions", impact.actions},
          {"blocked", impact.blocked},
          {"subjects", impact.subjects},
          {"taken_out", fold(impact.taken_out)},
          {"taken_out_count", impact.taken_out.size()},
          {"wiped", fold(impact.wiped)},
          {"reset", fold(impact.reset)},
          {"domains", std::move(domains)},
          {"at_least_s", impact.at_least.count()}};
}

nlohmann::json quarantineJson(const NodeName& node, const lifecycle::QuarantineEntry& entry) {
  return {{"node", node.str()},
          {"since", muster::toString(entry.since)},
          {"by", entry.by},
          {"reason", entry.reason},
          {"evidence", entry.evidence}};
}

nlohmann::json holdJson(const app::PoolHold& hold) {
  return {{"node", hold.node.str()},
          {"hold", hold.hold},
          {"seen_at", muster::toString(hold.seen_at)},
          {"overridden", hold.overridden},
          {"overridden_by", hold.overridden_by}};
}

Answer list(nlohmann::json items) {
  const auto total = items.size();
  return {200, {{"items", std::move(items)}, {"total", total}}};
}

Reply page(const Call& call, std::vector<nlohmann::json> all) {
  const auto limit = static_cast<std::size_t>(call.integer("limit", kDefaultPage));
  const auto begin = call.text("cursor").empty() ? 0 : call.integer("cursor", -1);
  if (begin < 0 || static_cast<std::size_t>(begin) > all.size())
    return std::unexpected(Problem(400, "invalid-input", "\"cursor\" is not one of this list",
                                   "begin without cursor"));
  auto items = nlohmann::json::array();
  auto at = static_cast<std::size_t>(begin);
  for (; at < all.size() && items.size() < limit; ++at) items.push_back(std::move(all[at]));
  Answer out{200, {{"items", std::move(items)}, {"total", all.size()}}};
  if (at < all.size()) out.body["next"] = std::to_string(at);
  return out;
}

std::expected<const inventory::Node*, Problem> nodeOf(app::Session& session, const Call& call,
                                                      const std::string& name) {
  const auto* node = session.cluster().findNode(NodeName(name));
  if (node && call.scope.has(session.cluster(), *node)) return node;
  return std::unexpected(Problem(404, "not-found",
                                 fmt::format("node {} is not in the inventory{}", name,
                                             call.scope.isSite() ? "" : ", or not in your scope")));
}

bool sees(const inventory::Cluster& cluster, const Call& call, const std::string& subject) {
  if (call.scope.isSite()) return true;
  const auto* node =
      subject.empty() || subject.starts_with('@') ? nullptr : cluster.findNode(NodeName(subject));
  return node && call.scope.has(cluster, *node);
}

std::expected<void, Problem> requireInScope(SiteReader& reader, const Call& call,
                                            const std::string& hostlist) {
  TRY(session, reader.session());
  TRY(names, inventory::expandHostlist(hostlist));
  for (const auto& name : names) TRY_OK(nodeOf(*session, call, name));
  return {};
}

std::expected<std::set<std::string>, Problem> namedNodes(app::Session& session, const Call& call) {
  std::set<std::string> named;
  const auto hostlist = call.text("nodes");
  if (hostlist.empty()) return named;
  TRY(names, inventory::expandHostlist(hostlist));
  for (const auto& name : names) TRY_OK(nodeOf(session, call, name));
  named.insert(names.begin(), names.end());
  return named;
}

Problem noSuch(std::string_view what, const std::string& name, const std::string& there_are) {
  return {404, "not-found", fmt::format("there is no {} {}", what, name),
          "there are: " + there_are};
}

}  // namespace muster::api
