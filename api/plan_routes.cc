// SPDX-License-Identifier: Apache-2.0
// What differs from the inventory by what was seen last: a look ahead. What is carried out is the
// plan of a run, which looks at its nodes first (api/run_routes.cc).
#include "api/answers.h"
#include "api/kept_answer.h"
#include "api/schema.h"
#include "app/plan.h"
#include "app/plan_groups.h"
#include "fabric/topology/leaves.h"
#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>
#include <chrono>
#include <memory>

namespace muster::api {
namespace {

constexpr std::size_t kMostNodes = 2'000;  ///< of one look: it takes the reader's thread meanwhile
constexpr std::size_t kMostGroups = 500;

nlohmann::json groupJson(const app::PlanGroup& group) {
  return {{"facet", group.facet},
          {"from", group.from},
          {"to", group.to},
          {"disruption", toString(group.disruption)},
          {"reason", group.reason},
          {"blocked", group.blocked},
          {"expected_s", group.expected.count()},
          {"nodes", inventory::foldHostlist(group.subjects)},
          {"nodes_count", group.subjects.size()}};
}

Reply makeAnswer(app::Session& session, const std::string& nodes, WallTime now) {
  TRY(policy, app::policyFor(session.cluster(), nodes, session.store()));
  TRY(facts, session.store().facts());
  TRY(plan, session.controller->plan(facts, policy));
  const auto impact = app::impactOf(session.cluster(), facts, plan, fabric::leavesOf);
  const auto groups = app::groupsOf(plan);
  auto items = nlohmann::json::array();
  for (std::size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i)
    items.push_back(groupJson(groups[i]));
  auto unread = nlohmann::json::array();
  for (const auto& [what, whose] : impact.unread)
    unread.push_back({{"what", what}, {"nodes", fold(whose)}, {"nodes_count", whose.size()}});
  auto exceeded = nlohmann::json::array();
  for (const auto& line : app::exceededLimits(impact)) exceeded.push_back(line);
  Answer out{200,
             {{"nodes", nodes},
              {"inventory_digest", plan.inventory_digest},
              {"groups", std::move(items)},
              {"groups_count", groups.size()},
              {"impact", impactJson(impact)},
              {"exceeded", std::move(exceeded)},
              {"unread", std::move(unread)}}};
  out.as_of = now;
  return out;
}

Reply plan(SiteReader& reader, const Call& call, Kept<Answer>& kept) {
  TRY(session, reader.session());
  const auto nodes = call.text("nodes");
  const auto began = std::chrono::steady_clock::now();
  const auto key = muster::toString(reader.inUseSince()) + nodes;
  if (const auto* known = kept.find(key)) return *known;
  std::size_t count = session->cluster().nodes.size();
  if (!nodes.empty()) {
    TRY_OK(requireInScope(reader, call, nodes));
    TRY(names, inventory::expandHostlist(nodes));
    count = names.size();
  }
  if (count > kMostNodes)
    return std::unexpected(Problem(
        400, "invalid-input", fmt::format("a look ahead over {} nodes is too much at once", count),
        fmt::format("name at most {} nodes, or ask for a run, which plans for all and "
                    "waits for a confirmation",
                    kMostNodes)));
  TRY(made, makeAnswer(*session, nodes, reader.now()));
  return kept.keep(key, began, std::move(made));
}

}  // namespace

void addPlanRoutes(std::vector<ApiRoute>& routes) {
  // The routes' own, used on the reader thread alone.
  auto kept = std::make_shared<Kept<Answer>>();
  routes.push_back(
      {"GET",
       "/plan",
       Verb::Plan,
       Reach::Site,
       "What would be changed by what was seen last: a look ahead",
       {},
       {{"nodes", Kind::Hostlist, "These only; default: all, of a site of up to 2,000"}},
       {},
       refTo("Plan"),
       200,
       [kept](SiteReader& reader, const Call& call) { return plan(reader, call, *kept); }});
}

}  // namespace muster::api
