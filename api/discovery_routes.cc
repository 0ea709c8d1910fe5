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
}

}  // namespace muster::api
