// SPDX-License-Identifier: Apache-2.0
// What several resources share: the forms of nodes, pages of lists, and what is in a scope.
#pragma once

#include "api/route.h"
#include "api/site_reader.h"
#include "app/nodes/pool_holds.h"
#include "lifecycle/model/plan_impact.h"
#include "lifecycle/model/quarantine.h"

#include <set>
#include <string>
#include <vector>

namespace muster::inventory {
struct Cluster;
}

namespace muster::api {

inline constexpr std::int64_t kDefaultPage = 1'000, kMaxPage = 20'000;

/// `limit` and `cursor`, for the tables of routes.
std::vector<Field> withPages(std::vector<Field> fields);
inline const Field kNameField{"name", Kind::Text, "A node of the inventory", true};

/// A route that only looks, without parameters.
ApiRoute lookRoute(std::string path, Reach reach, std::string_view summary, nlohmann::json schema,
                   Act act);

nlohmann::json nodeJson(const app::NodeStatus& node, const std::string& pool_name);
nlohmann::json quarantineJson(const NodeName& node, const lifecycle::QuarantineEntry& entry);
nlohmann::json holdJson(const app::PoolHold& hold);
nlohmann::json impactJson(const lifecycle::PlanImpact& impact);
std::string fold(const std::vector<NodeName>& nodes);

/// {"items": …, "total": …}
Answer list(nlohmann::json items);
/// The part of `all` that limit and cursor (a place in it) ask for. Errors: 400
Reply page(const Call& call, std::vector<nlohmann::json> all);

/// The declared node, when it is in the caller's scope. Errors: 404
std::expected<const inventory::Node*, Problem> nodeOf(app::Session& session, const Call& call,
                                                      const std::string& name);
/// Whether the caller sees what is said of this subject: of @cluster only who has the whole site.
bool sees(const inventory::Cluster& cluster, const Call& call, const std::string& subject);
/// Errors: 404 (names the first node that is not in the scope, or not in the inventory)
std::expected<void, Problem> requireInScope(SiteReader& reader, const Call& call,
                                            const std::string& hostlist);
/// Those that the parameter "nodes" (a hostlist) names; none: it does not ask for some. Errors:
/// 400; 404 (names the first node that is not in the scope, or not in the inventory)
std::expected<std::set<std::string>, Problem> namedNodes(app::Session& session, const Call& call);
/// Errors: 404 (no such thing; what there is)
Problem noSuch(std::string_view what, const std::string& name, const std::string& there_are);

}  // namespace muster::api
