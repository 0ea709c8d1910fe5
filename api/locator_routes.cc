// SPDX-License-Identifier: Apache-2.0
// The LED by which somebody at the rack finds a machine.
#include "api/answers.h"
#include "api/bmc_desk.h"
#include "api/schema.h"
#include "app/nodes/bmc_power.h"

#include <memory>

namespace muster::api {
namespace {

struct LocatorRow {
  std::string state = "unknown";  ///< unknown, asking, on, off, failed
  std::string text;               ///< why it failed
  WallTime at{};
};
using LocatorDesk = BmcDesk<LocatorRow>;

LocatorRow ask(const app::Options& options, const NodeName& node, std::optional<bool> on) {
  const auto is_on = app::locateNode(options, node, on);
  const auto now = SystemClock().now();
  if (!is_on) return {"failed", is_on.error().str(), now};
  return {*is_on ? "on" : "off", "", now};
}

nlohmann::json locatorJson(const NodeName& node, const LocatorRow& row) {
  nlohmann::json out = {{"node", node.str()}, {"state", row.state}, {"text", row.text}};
  if (row.at != WallTime{}) out["at"] = muster::toString(row.at);
  return out;
}

Reply look(SiteReader& reader, const Call& call, LocatorDesk& desk) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  return Answer{200, locatorJson(node->name, desk.row(node->name))};
}

Reply order(SiteReader& reader, const Call& call, LocatorDesk& desk) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  const auto word = call.text("led");
  if (word != "on" && word != "off" && word != "read")
    return std::unexpected(Problem(400, "invalid-input", "\"led\" is on, off or read"));
  const auto on = word == "read" ? std::nullopt : std::optional(word == "on");
  TRY_OK(desk.ask(node->name, {"asking", "", reader.now()},
                  [options = reader.optionsFor(call.actor), name = node->name, on] {
                    return ask(options, name, on);
                  }));
  return Answer{202, locatorJson(node->name, desk.row(node->name))};
}

}  // namespace

void addLocatorRoutes(std::vector<ApiRoute>& routes) {
  auto desk = std::make_shared<LocatorDesk>();
  routes.push_back(
      {"GET",
       "/nodes/{name}/locator",
       Verb::Look,
       Reach::Scoped,
       "What the machine's locate LED was when its BMC was asked last",
       {kNameField},
       {},
       {},
       refTo("Locator"),
       200,
       [desk](SiteReader& reader, const Call& call) { return look(reader, call, *desk); }});
  routes.back().needs_serving_host = true;  // what a BMC has said is known to who has asked it
  routes.push_back(
      {"POST",
       "/nodes/{name}/locator",
       Verb::Power,
       Reach::Scoped,
       "Switch the machine's locate LED, or ask its BMC for it",
       {kNameField},
       {},
       {{"led", Kind::Text, "on, off or read", true}},
       refTo("Locator"),
       202,
       [desk](SiteReader& reader, const Call& call) { return order(reader, call, *desk); }});
  routes.back().needs_serving_host = true;
}

}  // namespace muster::api
