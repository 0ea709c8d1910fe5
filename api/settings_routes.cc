// SPDX-License-Identifier: Apache-2.0
// What people have settled for the site: when pools may lose nodes, and who may do what.
#include "api/access_file.h"
#include "api/answers.h"
#include "api/schema.h"
#include "app/records/notifications.h"
#include "app/runs/run_policy.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"

#include <array>
#include <chrono>

namespace muster::api {
namespace {

using inventory::MaintenanceWindow;

constexpr std::chrono::days kAhead{15};  ///< so far spans are listed
constexpr std::size_t kMostSpans = 50;   ///< of one pool
constexpr std::array kDays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

nlohmann::json windowJson(const MaintenanceWindow& window) {
  auto days = nlohmann::json::array();
  for (const auto day : window.days) days.push_back(kDays.at(static_cast<std::size_t>(day)));
  return {{"days", std::move(days)},
          {"from", fmt::format("{:02}:{:02}", window.from_minute / 60, window.from_minute % 60)},
          {"minutes", window.minutes},
          {"time_zone", window.time_zone}};
}

nlohmann::json poolWindows(const std::string& pool, const std::vector<MaintenanceWindow>& windows,
                           WallTime now) {
  nlohmann::json out = {{"pool", pool},
                        {"windows", nlohmann::json::array()},
                        {"is_open", false},
                        {"spans", nlohmann::json::array()},
                        {"problem", ""}};
  for (const auto& window : windows) out["windows"].push_back(windowJson(window));
  const auto spans = app::openSpans(windows, {now, now + kAhead});
  if (!spans) {
    out["problem"] = spans.error().str();
    return out;
  }
  for (const auto& span : *spans) {
    if (span.opens <= now && now < span.closes) out["is_open"] = true;
    if (out["spans"].size() < kMostSpans)
      out["spans"].push_back(
          {{"opens", muster::toString(span.opens)}, {"closes", muster::toString(span.closes)}});
  }
  return out;
}

Reply windows(SiteReader& reader, const Call&) {
  TRY(session, reader.session());
  auto items = nlohmann::json::array();
  for (const auto& [name, pool] : session->cluster().pools)
    if (!pool.maintenance.empty())
      items.push_back(poolWindows(name, pool.maintenance, reader.now()));
  return list(std::move(items));
}

nlohmann::json rowJson(std::string_view kind, const std::string& who, Role role, const Scope& scope,
                       const std::string& wrong) {
  return {{"kind", kind},
          {"who", who},
          {"role", toString(role)},
          {"scope", toJson(scope)},
          {"wrong", wrong}};
}

/// The rows in the order in which they count; one that is wrong stands as what it closes.
Reply users(SiteReader& reader, const Call&) {
  TRY(table, AccessTable::read(reader.accessFile()));
  auto items = nlohmann::json::array();
  for (const auto& row : table.rows())
    items.push_back(
        rowJson(row.is_group ? "group" : "user", row.who, row.role, row.scope, row.wrong));
  for (const auto& row : table.certificates()) {
    std::string who;
    for (const auto& [name, value] : row.conditions)
      who += (who.empty() ? "" : " ") + name + "=" + value;
    items.push_back(rowJson("certificate", who, row.role, row.scope, row.wrong));
  }
  for (const auto& row : table.oidcRows())
    items.push_back(rowJson(row.is_group ? "oidc-group" : "oidc-user", row.who, row.role, row.scope,
                            row.wrong));
  auto out = list(std::move(items));
  out.body["file"] = reader.accessFile().string();
  out.body["provider"] = table.oidc() ? table.oidc()->issuer : "";
  return out;
}

Reply receivers(SiteReader& reader, const Call&) {
  TRY(found, app::notificationReceivers(reader.options()));
  auto items = nlohmann::json::array();
  for (const auto& each : found)
    items.push_back({{"name", each.name},
                     {"url", each.url},
                     {"format", each.format},
                     {"told", each.is_told},
                     {"waiting", each.waiting},
                     {"trouble", each.trouble}});
  return list(std::move(items));
}

}  // namespace

void addSettingsRoutes(std::vector<ApiRoute>& routes) {
  routes.push_back(lookRoute("/receivers", Reach::Site,
                             "Who outside is told of events and findings, and whether they take it",
                             listOf("Receiver"), receivers));
  routes.back().verb = Verb::Admin;  // a receiver's URL may be its secret
  routes.push_back(lookRoute("/windows", Reach::Site,
                             "Maintenance windows of pools, and when they are open in the next "
                             "15 days",
                             listOf("PoolWindows"), windows));
  const nlohmann::json more = {{"file", {{"type", "string"}}}, {"provider", {{"type", "string"}}}};
  auto route = lookRoute("/users", Reach::Site,
                         "Rows of the access file: who may do what, in the order in which they "
                         "count",
                         listOf("AccessRow", more), users);
  route.verb = Verb::Admin;
  routes.push_back(std::move(route));
}

}  // namespace muster::api
