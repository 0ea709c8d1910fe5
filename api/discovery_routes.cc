// SPDX-License-Identifier: Apache-2.0
// Machines that were seen and that nobody may have declared yet, and what does not fit among them.
#include "api/answers.h"
#include "api/schema.h"
#include "app/nodes/discovery.h"
#include "inventory/model/cluster.h"

namespace muster::api {
namespace {

Reply discoveries(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(found, app::discoveredMachines(session->cluster(), reader.store()));
  std::vector<nlohmann::json> items;
  for (const auto& machine : found.machines) items.push_back(toJson(machine));
  return page(call, std::move(items));
}

Reply oddities(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(found, app::discoveredMachines(session->cluster(), reader.store()));
  std::vector<nlohmann::json> items;
  for (const auto& odd : found.anomalies)
    items.push_back({{"what", odd.what}, {"where", odd.where}, {"what_to_do", odd.what_to_do}});
  return page(call, std::move(items));
}

Reply approve(SiteReader& reader, const Call& call) {
  app::ApproveRequest request;
  request.machines = call.texts("machines");
  request.matches = call.texts("matches");
  request.profile = call.text("profile");
  request.rack = call.text("rack");
  request.as = call.text("as");
  request.mac = call.text("mac");
  TRY(approved, app::approveMachines(reader.optionsFor(call.actor), request));
  return Answer{200, {{"approved", approved}}};
}

Reply forget(SiteReader& reader, const Call& call) {
  const auto machines = call.texts("machines");
  const bool all = call.body.value("all", false);
  if (machines.empty() != all)
    return std::unexpected(Problem(400, "invalid-input",
                                   "say which: \"machines\", or \"all\": true for the whole list"));
  const auto options = reader.optionsFor(call.actor);
  if (all)
    TRY_OK(app::forgetAllMachines(options));
  else
    TRY_OK(app::forgetMachines(options, machines));
  return Answer{204, nullptr};
}

}  // namespace

void addDiscoveryRoutes(std::vector<ApiRoute>& routes) {
  const auto add = [&](std::string path, std::string_view summary, std::string name, Act act) {
    auto route =
        lookRoute(std::move(path), Reach::Site, summary, listOf(std::move(name)), std::move(act));
    route.query = withPages({});
    routes.push_back(std::move(route));
  };
  add("/discoveries", "Machines that were seen, declared or not", "Discovery", discoveries);
  add("/discoveries/findings", "What does not fit among the machines that were seen",
      "DiscoveryFinding", oddities);
  const Field machines{"machines", Kind::Texts, "Serials, BMC addresses or MACs"};
  const auto order = [&](std::string path, std::string_view summary, std::vector<Field> body,
                         nlohmann::json schema, int status, Act act) {
    routes.push_back({"POST",
                      std::move(path),
                      Verb::Admin,
                      Reach::Site,
                      summary,
                      {},
                      {},
                      std::move(body),
                      std::move(schema),
                      status,
                      std::move(act)});
  };
  order("/discoveries/approve",
        "Say that machines may become nodes; `muster discover --write` on the host adds their rows",
        {machines,
         {"matches", Kind::Texts, "FIELD=GLOB; several must all match"},
         {"profile", Kind::Text, "The machines' profile"},
         {"rack", Kind::Text, "The machines' rack"},
         {"as", Kind::Text, "The node's name, of one machine"},
         {"mac", Kind::Text, "The NIC that boots, of one machine"}},
        refTo("Approved"), 200, approve);
  order("/discoveries/forget", "Remove machines from the list",
        {machines, {"all", Kind::Boolean, "The whole list, also one that cannot be read"}},
        nlohmann::json(), 204, forget);
}

}  // namespace muster::api
