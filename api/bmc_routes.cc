// SPDX-License-Identifier: Apache-2.0
// What is known of BMCs, and what a person says about them after having looked; none is asked.
#include "api/answers.h"
#include "api/run_json.h"
#include "api/run_orders.h"
#include "api/schema.h"
#include "app/nodes/bmc_credentials.h"
#include "app/nodes/bmc_trust.h"
#include "inventory/model/cluster.h"

namespace muster::api {
namespace {

/// The store is looked into for the page alone.
Reply bmcs(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  const auto& cluster = session->cluster();
  TRY(named, namedNodes(*session, call));
  std::vector<nlohmann::json> wanted;
  for (const auto& node : cluster.nodes)
    if (call.scope.has(cluster, node) && (named.empty() || named.contains(node.name.str())))
      wanted.emplace_back(node.name.str());
  TRY(out, page(call, std::move(wanted)));
  for (auto& item : out.body["items"]) {
    TRY(identity, app::bmcIdentity(cluster, reader.store(),
                                   *cluster.findNode(NodeName(item.get<std::string>()))));
    item = toJson(identity);
  }
  return out;
}

using Reset = Result<std::vector<NodeName>> (*)(const app::Options&, const std::string&);

Act reset(Reset change) {
  return [change](SiteReader& reader, const Call& call) -> Reply {
    TRY_OK(requireInScope(reader, call, call.text("nodes")));
    TRY(changed, change(reader.optionsFor(call.actor), call.text("nodes")));
    auto items = nlohmann::json::array();
    for (const auto& node : changed) items.push_back({{"node", node.str()}});
    return list(std::move(items));
  };
}

/// Whoever carries runs out changes them.
Act change(lifecycle::RunKind kind) {
  return [kind](SiteReader& reader, const Call& call) -> Reply {
    TRY(made, submitRun(reader, call, kind));
    return Answer{202, runJson(made), {{"Location", std::string(kBasePath) + "/runs/" + made.id}}};
  };
}

}  // namespace

void addBmcRoutes(std::vector<ApiRoute>& routes) {
  auto looks = lookRoute("/bmcs", Reach::Scoped,
                         "Which certificates of BMCs are believed, whose password was refused",
                         listOf("Bmc"), bmcs);
  looks.query = withPages({{"nodes", Kind::Hostlist, "These only"}});
  routes.push_back(std::move(looks));
  const auto add = [&](std::string path, std::string_view summary, Reset change) {
    routes.push_back({"POST",
                      std::move(path),
                      Verb::Rotate,
                      Reach::Scoped,
                      summary,
                      {},
                      {},
                      {{"nodes", Kind::Hostlist, "Hostlist", true}},
                      listOf("NodeName"),
                      200,
                      reset(change)});
  };
  add("/bmcs/trust/reset", "Pin the certificate and the SSH host key that these BMCs present next",
      app::resetBmcTrust);
  add("/bmcs/auth/reset", "Try the refused password of these BMCs once more", app::resetBmcAuth);
  const auto ask = [&](std::string path, std::string_view summary, lifecycle::RunKind kind) {
    routes.push_back(
        {"POST",
         std::move(path),
         Verb::Rotate,
         Reach::Scoped,
         summary,
         {},
         {},
         {{"nodes", Kind::Hostlist, "Hostlist", true}, kConfirm, kAfterRestart, kMeantInventory},
         refTo("Run"),
         202,
         change(kind)});
    routes.back().knows_its_key = true;
  };
  ask("/bmcs/password/rotate", "Change these BMCs' password to the next one of their credential",
      lifecycle::RunKind::BmcPassword);
  ask("/bmcs/certificate/issue",
      "Let these BMCs make a key and give them a certificate, which is trusted from then on",
      lifecycle::RunKind::BmcCertificate);
}

}  // namespace muster::api
