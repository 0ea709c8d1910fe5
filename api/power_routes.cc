// SPDX-License-Identifier: Apache-2.0
// A machine's power, switched by its BMC. What the store or the inventory forbid is refused at
// once; what the BMC says to it is read later.
#include "api/answers.h"
#include "api/bmc_desk.h"
#include "api/schema.h"
#include "app/nodes/bmc_power.h"
#include "inventory/model/cluster.h"

#include <memory>

namespace muster::api {
namespace {

struct PowerRow {
  std::string state = "unknown";  ///< unknown, asking, done, failed
  std::string action;             ///< as ordered
  std::string power;              ///< on, off, unknown: after it; empty: not known
  std::string text;               ///< why it failed, or what was said on the way
  std::string by;                 ///< who has ordered it
  WallTime at{};
};
using PowerDesk = BmcDesk<PowerRow>;

std::string wordOf(bmc::PowerState power) {
  return power == bmc::PowerState::On ? "on" : power == bmc::PowerState::Off ? "off" : "unknown";
}

PowerRow carryOut(const app::Options& options, const app::PowerRequest& request, PowerRow row) {
  const auto done = app::powerNodeBeside(options, request, [&](const std::string& text) {
    row.text += (row.text.empty() ? "" : "; ") + text;
  });
  row.at = SystemClock().now();
  row.state = done ? "done" : "failed";
  if (!done) {
    row.text = done.error().str();
  } else if (done->after) {
    const auto& after = *done->after;
    row.power = after ? wordOf(*after) : "unknown";
    if (!after)
      row.text = "it was ordered; whether it has come is not known: " + after.error().str();
  }
  return row;
}

nlohmann::json powerJson(const NodeName& node, const PowerRow& row) {
  nlohmann::json out = {{"node", node.str()}, {"state", row.state}, {"action", row.action},
                        {"power", row.power}, {"text", row.text},   {"by", row.by}};
  if (row.at != WallTime{}) out["at"] = muster::toString(row.at);
  return out;
}

Reply look(SiteReader& reader, const Call& call, PowerDesk& desk) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  return Answer{200, powerJson(node->name, desk.row(node->name))};
}

/// The request, and the person's word that this very machine is meant. Errors: 400, 403
std::expected<app::PowerRequest, Problem> requestOf(const Call& call, const NodeName& node) {
  app::PowerRequest out{.node = node, .reason = call.text("reason")};
  TRY(command, app::parsePowerCommand(call.text("action")));
  out.command = command;
  out.ipmi = call.flag("ipmi");
  out.force = call.flag("force");
  out.override_inventory = call.flag("override");
  out.confirmed = true;
  const auto& row = app::rowOf(command);
  if (row.is_disruptive && call.text("confirm_node") != node.str())
    return std::unexpected(
        Problem(400, "invalid-input",
                fmt::format("{0} {1}; an order for that names it twice: in the path and in "
                            "\"confirm_node\"",
                            node.str(), row.effect),
                "nothing was done"));
  if (out.override_inventory && !may(call.identity.role, Verb::Admin))
    return std::unexpected(
        denied("to override what the inventory asks for is an admin's", rolesThatMay(Verb::Admin)));
  return out;
}

Reply order(SiteReader& reader, const Call& call, PowerDesk& desk) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  TRY(request, requestOf(call, node->name));
  TRY_OK(app::mayPowerNode(reader.store(), session->cluster(), request, reader.now()));
  const PowerRow asking{.state = "asking",
                        .action = call.text("action"),
                        .by = call.identity.principal,
                        .at = reader.now()};
  TRY_OK(desk.ask(node->name, asking, [options = reader.optionsFor(call.actor), request, asking] {
    return carryOut(options, request, asking);
  }));
  return Answer{202, powerJson(node->name, desk.row(node->name))};
}

}  // namespace

void addPowerRoutes(std::vector<ApiRoute>& routes) {
  auto desk = std::make_shared<PowerDesk>();
  routes.push_back(
      {"GET",
       "/nodes/{name}/power",
       Verb::Look,
       Reach::Scoped,
       "What came of the last order for the machine's power",
       {kNameField},
       {},
       {},
       refTo("Power"),
       200,
       [desk](SiteReader& reader, const Call& call) { return look(reader, call, *desk); }});
  routes.push_back(
      {"POST",
       "/nodes/{name}/power",
       Verb::Power,
       Reach::Scoped,
       "Switch the machine's power by its BMC",
       {kNameField},
       {},
       {{"action", Kind::Text,
         "on, shutdown, off, restart, ac-cycle, nmi, or reset (the BMC's own)", true},
        {"reason", Kind::Text, "Why; kept in the log. Needed but for on"},
        {"confirm_node", Kind::Text, "The machine's name once more. Needed but for on"},
        {"force", Kind::Boolean, "Also when it may be running jobs"},
        {"ipmi", Kind::Boolean, "By IPMI, where Redfish does not answer"},
        {"override", Kind::Boolean,
         "Although the inventory asks for approvals or a window; an admin's, and stays a finding"}},
       refTo("Power"),
       202,
       [desk](SiteReader& reader, const Call& call) { return order(reader, call, *desk); }});
}

}  // namespace muster::api
