// SPDX-License-Identifier: Apache-2.0
// What commands ask beside the lists: which server answers, the plan as a value, ending findings.
#include "api/answers.h"
#include "api/schema.h"
#include "app/actor.h"
#include "app/plan.h"
#include "app/records.h"
#include "base/json_input.h"
#include "base/version.h"
#include "lifecycle/model/json.h"

#include <filesystem>

namespace muster::api {
namespace {

Reply server(SiteReader& reader, const Call&) {
  const auto& options = reader.options();
  const auto whole = [](const std::filesystem::path& path) {
    std::error_code ignored;
    const auto out = std::filesystem::weakly_canonical(path, ignored);
    return ignored ? path.string() : out.string();
  };
  return Answer{200,
                {{"version", kVersion},
                 {"host", app::hostName()},
                 {"state", whole(options.state)},
                 {"inventory", whole(options.inventory)}}};
}

/// From the file as it is now, as the next `apply` reads it, and the facts as they are stored.
Reply plan(SiteReader& reader, const Call& call) {
  const auto nodes = call.text("nodes");
  app::ProgressListener nobody;
  const auto made = app::makePlan(reader.options(), {nodes, false}, nobody);
  if (!made) {
    Problem problem(made.error());
    if (made.error().code() == ErrorCode::InvalidInput)
      if (const auto loaded = app::loadDeclared(reader.options()); !loaded.cluster)
        problem.diagnostics = loaded.diagnostics.all();
    return std::unexpected(std::move(problem));
  }
  TRY(json, parseJson(made->plan.toJson(), kKeptJson));
  return Answer{200,
                {{"plan", std::move(json)},
                 {"impact", impactJson(made->impact)},
                 {"slowness", made->slowness}}};
}

Reply clear(SiteReader& reader, const Call& call) {
  const auto nodes = call.text("nodes");
  if (nodes == lifecycle::Subject::kCluster && !call.scope.isSite())
    return std::unexpected(
        denied("what is wrong with the cluster is for who has the whole site", {}));
  if (nodes != lifecycle::Subject::kCluster) TRY_OK(requireInScope(reader, call, nodes));
  TRY(cleared, app::clearFindings(reader.optionsFor(call.actor),
                                  {nodes, call.text("facet"), call.text("reason")}));
  auto items = nlohmann::json::array();
  for (const auto& finding : cleared) items.push_back(lifecycle::toJson(finding));
  return list(std::move(items));
}

nlohmann::json objectOf(std::initializer_list<std::pair<const char*, const char*>> members) {
  nlohmann::json out = {{"type", "object"}, {"properties", nlohmann::json::object()}};
  for (const auto& [name, type] : members) {
    out["properties"][name]["type"] = type;
    out["required"].push_back(name);
  }
  return out;
}

}  // namespace

void addClientRoutes(std::vector<ApiRoute>& routes) {
  routes.push_back(lookRoute("/server", Reach::Scoped,
                             "Which server answers, and whose site it serves",
                             objectOf({{"version", "string"},
                                       {"host", "string"},
                                       {"state", "string"},
                                       {"inventory", "string"}}),
                             server));
  routes.push_back({"GET",
                    "/plan/actions",
                    Verb::Plan,
                    Reach::Site,
                    "The plan as `plan --json`, from the inventory's file and what was observed",
                    {},
                    {{"nodes", Kind::Hostlist, "These only; default: all"}},
                    {},
                    objectOf({{"plan", "object"}, {"impact", "object"}, {"slowness", "number"}}),
                    200,
                    plan});
  routes.push_back({"POST",
                    "/findings/clear",
                    Verb::Hold,
                    Reach::Scoped,
                    "End findings of a facet; what still holds is found again",
                    {},
                    {},
                    {{"nodes", Kind::Hostlist, "Hostlist, or @cluster", true},
                     {"facet", Kind::Text, "Whose findings end", true},
                     {"reason", Kind::Text, "Why; recorded in the log", true}},
                    listOf("Finding"),
                    200,
                    clear});
}

}  // namespace muster::api
