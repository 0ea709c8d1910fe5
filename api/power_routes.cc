// SPDX-License-Identifier: Apache-2.0
// A machine's power, switched by its BMC. What the store or the inventory forbid is refused at
// once; what the BMC says to it is read later.
#include "api/answers.h"
#include "api/bmc_desk.h"
#include "api/schema.h"
#include "app/nodes/bmc_power.h"
#include "app/site/effective_cluster.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/log.h"
#include "inventory/model/cluster.h"

#include <algorithm>
#include <memory>

namespace muster::api {
namespace {

struct PowerRow {
  std::string state = "unknown";  ///< unknown, asking, done, failed
  std::string action;             ///< as ordered
  std::string before;             ///< on, off, unknown: before it; empty: not known
  std::string power;              ///< on, off, unknown: after it; empty: not known
  std::string text;               ///< why it failed, or what was said on the way
  std::string by;                 ///< who has ordered it
  WallTime at{};
  WallTime asked_at{};  ///< of the order, by which it is told from others
};
using PowerDesk = BmcDesk<PowerRow>;

/// Before the node's name: the last order for its power, and what came of it.
constexpr const char* kPowerKey = "api.power.";

std::string wordOf(bmc::PowerState power) {
  return power == bmc::PowerState::On ? "on" : power == bmc::PowerState::Off ? "off" : "unknown";
}

nlohmann::json keptJson(const PowerRow& row) {
  return {{"state", row.state},
          {"action", row.action},
          {"before", row.before},
          {"power", row.power},
          {"text", row.text},
          {"by", row.by},
          {"at", muster::toString(row.at)},
          {"asked_at", muster::toString(row.asked_at)}};
}

Result<void> keep(lifecycle::Store& store, const NodeName& node, const PowerRow& row) {
  return store.putValue(kPowerKey + node.str(), jsonText(keptJson(row)));
}

/// Of this process, or of one before it.
Result<PowerRow> lastOrder(SiteReader& reader, const NodeName& node, PowerDesk& desk) {
  auto known = desk.row(node);
  if (known.asked_at != WallTime{}) return known;
  TRY(text, reader.store().getValue(kPowerKey + node.str()));
  if (!text) return known;
  TRY(kept, parseJson(*text, kKeptJson));
  PowerRow out{textOf(kept, "state"), textOf(kept, "action"), textOf(kept, "before"),
               textOf(kept, "power"), textOf(kept, "text"),   textOf(kept, "by")};
  out.at = parseWallTime(textOf(kept, "at")).value_or(WallTime{});
  out.asked_at = parseWallTime(textOf(kept, "asked_at")).value_or(WallTime{});
  if (out.state != "asking") return out;
  TRY(claims, reader.store().claims());
  const lifecycle::Subject subject(node);
  if (std::ranges::find(claims, subject, &lifecycle::Claim::subject) != claims.end())
    return out;  // another host asks its BMC, or nobody has taken the claim of one that died yet
  out.state = "unknown";
  out.text =
      "its server ended before it could say what came of it; the log (/events) may know, and "
      "the machine's BMC does";
  return out;
}

PowerRow carryOut(const app::Options& options, const app::PowerRequest& request, PowerRow row) {
  const auto done = app::powerNodeBeside(options, request, [&](const std::string& text) {
    row.text += (row.text.empty() ? "" : "; ") + text;
  });
  row.at = SystemClock().now();
  row.state = done ? "done" : "failed";
  if (!done) {
    row.text = inMembers(done.error().str(), {"reason", "force", "ipmi", "override"});
  } else if (done->after) {
    row.before = wordOf(done->before);
    const auto& after = *done->after;
    row.power = after ? wordOf(*after) : "unknown";
    if (!after)
      row.text = "it was ordered; whether it has come is not known: " + after.error().str();
  }
  const auto kept = [&]() -> Result<void> {
    TRY(store, app::openStoreForWriting(options));
    return keep(*store, request.node, row);
  }();
  if (!kept) logWarning("api", "power of {}: {}", request.node.str(), kept.error().str());
  return row;
}

nlohmann::json powerJson(const NodeName& node, const PowerRow& row) {
  nlohmann::json out = {{"node", node.str()},   {"state", row.state}, {"action", row.action},
                        {"before", row.before}, {"power", row.power}, {"text", row.text},
                        {"by", row.by}};
  if (row.at != WallTime{}) out["at"] = muster::toString(row.at);
  return out;
}

Reply look(SiteReader& reader, const Call& call, PowerDesk& desk) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  TRY(row, lastOrder(reader, node->name, desk));
  return Answer{200, powerJson(node->name, row)};
}

/// What has come of an order that is given again.
Reply again(SiteReader& reader, const Call& call, PowerDesk& desk, Answer then) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  TRY(row, lastOrder(reader, node->name, desk));
  if (muster::toString(row.asked_at) == textOf(then.body, "at") &&
      row.action == textOf(then.body, "action")) {
    then.body = powerJson(node->name, row);
  } else {
    then.body["state"] = "unknown";
    then.body["text"] =
        "another order was given for this machine since; what came of this one is in the log "
        "(/events)";
  }
  return then;
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
  const auto now = reader.now();
  const PowerRow asking{.state = "asking",
                        .action = call.text("action"),
                        .by = call.identity.principal,
                        .at = now,
                        .asked_at = now};
  TRY_OK(desk.ask(
      node->name, asking,
      [options = reader.optionsFor(call.actor), request, asking] {
        return carryOut(options, request, asking);
      },
      [&] { return keep(reader.store(), node->name, asking); }));
  return Answer{202, powerJson(node->name, asking)};
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
  routes.back().needs_serving_host = true;
  routes.back().again = [desk](SiteReader& reader, const Call& call, Answer then) {
    return again(reader, call, *desk, std::move(then));
  };
}

}  // namespace muster::api
