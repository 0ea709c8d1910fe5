// SPDX-License-Identifier: Apache-2.0
#include "api/remote_site.h"

#include "api/answer_members.h"
#include "api/answer_values.h"
#include "api/remote_records.h"
#include "base/json_members.h"
#include "base/json_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace muster::api {
namespace {

using lifecycle::Run;
using nlohmann::json;

constexpr std::chrono::minutes kPlanTimeout{10};  ///< of a large site of which nothing is known

Result<Run> runOf(Result<json> answer) {
  if (!answer) return std::unexpected(std::move(answer).error());
  return runFrom(*answer);
}

std::string runPath(const std::string& id) { return "/runs/" + io::percentEncode(id); }

}  // namespace

RemoteSite::RemoteSite(std::unique_ptr<ServerConnection> server)
    : server_(std::move(server)), records_(std::make_unique<RemoteRecords>(*server_)) {}
RemoteSite::~RemoteSite() = default;

Result<std::unique_ptr<RemoteSite>> RemoteSite::connect(RemoteSiteOptions options) {
  TRY(server, ServerConnection::open(std::move(options)));
  return std::unique_ptr<RemoteSite>(new RemoteSite(std::move(server)));
}

app::SiteRecords& RemoteSite::records() { return *records_; }

Result<bool> RemoteSite::isWatched() {
  TRY(answer, server_->get("/site"));
  TRY(site, siteStatusFrom(answer));
  return site.monitor.running;
}

template <class Make>
auto RemoteSite::listOf(const std::string& resource, ServerConnection::Query query, Make make) {
  const auto items = server_->list(resource, std::move(query));
  return items ? madeOf(*items, make)
               : decltype(madeOf(*items, make))(std::unexpected(items.error()));
}

Result<app::SiteStatus> RemoteSite::status(const app::NodeFilter& filter) {
  TRY(nodes, listOf("/nodes",
                    {{"nodes", filter.nodes},
                     {"state", filter.state},
                     {"rack", filter.rack},
                     {"pool", filter.pool},
                     {"profile", filter.profile}},
                    nodeStatusFrom));
  TRY(answer, server_->get("/site"));
  TRY(out, siteStatusFrom(answer));
  out.nodes = std::move(nodes);
  return std::move(out);
}

Result<std::vector<lifecycle::Explanation>> RemoteSite::explain(const app::NodeFilter& filter,
                                                                std::size_t max) {
  TRY_OK(app::requireChoice(filter));
  std::vector<lifecycle::Explanation> out;
  std::vector<std::string> resources;
  if (filter.nodes == lifecycle::Subject::kCluster) {
    resources.emplace_back("/cluster/why");
  } else {
    TRY(site, status(filter));
    TRY_OK(app::requireExplainable(site.nodes.size(), max));
    for (const auto& node : site.nodes)
      resources.push_back("/nodes/" + io::percentEncode(node.node) + "/why");
  }
  for (const auto& resource : resources) {
    TRY(answer, server_->get(resource));
    TRY(explanation, explanationFrom(answer));
    out.push_back(std::move(explanation));
  }
  return out;
}

Result<app::MadePlan> RemoteSite::plan(const app::PlanRequest& request,
                                       app::ProgressListener& progress) {
  if (request.refresh)
    progress.onNotice("muster: " + server_->where() +
                      " plans from what it has observed; --direct observes the nodes first");
  TRY(answer, server_->get("/plan/actions", {{"nodes", request.nodes}}, kPlanTimeout));
  if (!answer.is_object() || !answer.contains("plan") || !answer.contains("impact"))
    return fail(ErrorCode::Corrupt, server_->where() + " answers no plan");
  TRY(plan, lifecycle::Plan::fromJson(jsonText(answer["plan"])));
  TRY(impact, impactFrom(answer["impact"]));
  const auto slowness = answer.find("slowness");
  return app::MadePlan{
      nullptr, std::move(plan), std::move(impact),
      slowness != answer.end() && slowness->is_number() ? slowness->get<double>() : 1};
}

Result<std::vector<lifecycle::Event>> RemoteSite::lastEvents(const std::string& subject,
                                                             std::size_t limit) {
  TRY(answer, server_->get("/events", {{"subject", subject}, {"limit", std::to_string(limit)}}));
  TRY(items, itemsOf(answer));
  TRY(out, madeOf(*items, eventFrom));
  if (out.empty() && !subject.empty() && subject != lifecycle::Subject::kCluster)
    TRY_OK(server_->get("/nodes/" +
                        io::percentEncode(subject)));  // a mistyped name has no events, too
  return out;
}

Result<std::vector<lifecycle::Finding>> RemoteSite::findings(const std::string& nodes) {
  return listOf("/findings", {{"nodes", nodes}}, findingFrom);
}

Result<std::vector<lifecycle::Finding>> RemoteSite::clearFindings(
    const app::ClearFindingsRequest& request) {
  TRY(answer, server_->post("/findings/clear", {{"nodes", request.nodes},
                                                {"facet", request.facet},
                                                {"reason", request.reason}}));
  TRY(items, itemsOf(answer));
  return madeOf(*items, findingFrom);
}

Result<std::map<NodeName, lifecycle::QuarantineEntry>> RemoteSite::quarantine() {
  TRY(answer, server_->get("/quarantine"));
  TRY(items, itemsOf(answer));
  std::map<NodeName, lifecycle::QuarantineEntry> out;
  for (const auto& item : *items) {
    const auto since = parseWallTime(textOf(item, "since"));
    if (!since || textOf(item, "node").empty())
      return fail(ErrorCode::Corrupt, server_->where() + " answers no quarantine");
    out[NodeName(textOf(item, "node"))] = {*since, textOf(item, "by"), textOf(item, "reason"),
                                           textOf(item, "evidence")};
  }
  return out;
}

Result<std::vector<app::QuarantinedNode>> RemoteSite::addToQuarantine(const std::string& nodes,
                                                                      const std::string& reason) {
  TRY(answer, server_->post("/quarantine", {{"nodes", nodes}, {"reason", reason}}));
  TRY(items, itemsOf(answer));
  std::vector<app::QuarantinedNode> out;
  for (const auto& item : *items)
    out.push_back({NodeName(textOf(item, "node")), flagOf(item, "is_new"), textOf(item, "reason")});
  return out;
}

Result<void> RemoteSite::removeFromQuarantine(const NodeName& node, const std::string& reason) {
  TRY_OK(server_->post("/quarantine/" + io::percentEncode(node.str()) + "/remove",
                       {{"reason", reason}}));
  return {};
}

Result<app::PoolHolds> RemoteSite::poolHolds() {
  TRY(answer, server_->get("/holds"));
  TRY(items, itemsOf(answer));
  app::PoolHolds out;
  TRY(holds, madeOf(*items, poolHoldFrom));
  out.holds = std::move(holds);
  if (const auto unread = textOf(answer, "unread"); !unread.empty()) {
    TRY(names, inventory::expandHostlist(unread));
    for (const auto& name : names) out.unread.emplace_back(name);
  }
  return out;
}

Result<std::vector<app::PoolHold>> RemoteSite::overridePoolHolds(const std::string& nodes,
                                                                 const std::string& reason) {
  TRY(answer, server_->post("/holds/override", {{"nodes", nodes}, {"reason", reason}}));
  TRY(items, itemsOf(answer));
  return madeOf(*items, poolHoldFrom);
}

Result<std::string> RemoteSite::principal() {
  TRY(answer, server_->get("/me"));
  auto name = answer.is_object() ? textOf(answer, "principal") : std::string();
  if (name.empty()) return fail(ErrorCode::Corrupt, server_->where() + " does not say who this is");
  return name;
}

Result<Run> RemoteSite::submitRun(const app::RunRequest& request) {
  json body = {{"kind", toString(request.kind)},
               {"after_restart", toString(request.after_restart)}};
  if (!request.apply.nodes.empty()) body["nodes"] = request.apply.nodes;
  if (request.apply.confirm) body["confirm"] = true;
  if (!request.apply.inventory.empty()) body["inventory"] = request.apply.inventory;
  if (request.kind == lifecycle::RunKind::Isolate) {
    if (!request.isolate.engine.empty()) body["engine"] = request.isolate.engine;
    if (request.isolate.min_gbps > 0) body["min_gbps"] = request.isolate.min_gbps;
    if (request.isolate.seed > 0) body["seed"] = request.isolate.seed;
    if (!request.isolate.until.empty()) body["until"] = request.isolate.until;
  }
  if (request.kind == lifecycle::RunKind::Validate) {
    if (!request.validate.gates.empty()) body["gates"] = request.validate.gates;
    if (request.validate.synchronized_load) body["synchronized_load"] = true;
  }
  if (request.kind == lifecycle::RunKind::FirmwareRetry)
    body["reason"] = request.firmware_retry.reason;
  if (request.kind == lifecycle::RunKind::ImageBuild) {
    if (!request.image_build.image.empty()) body["image"] = request.image_build.image;
    if (!request.image_build.over.empty()) body["over"] = request.image_build.over;
  }
  if (request.kind == lifecycle::RunKind::Erase) {
    body["disks"] = request.erase.disks;
    body["reason"] = request.erase.reason;
    body["confirm_node"] = request.apply.nodes;
  }
  if (request.kind == lifecycle::RunKind::Rollout) {
    const auto& rollout = request.rollout;
    const auto add = [&body](const char* name, const std::string& value) {
      if (!value.empty()) body[name] = value;
    };
    add("change", rollout.change);
    add("driver", rollout.driver);
    if (rollout.on_failure) body["on_failure"] = lifecycle::toString(*rollout.on_failure);
    if (rollout.on_inconclusive)
      body["on_inconclusive"] = lifecycle::toString(*rollout.on_inconclusive);
    add("wipe_reason", rollout.wipe_reason);
    if (rollout.back) body["rollback"] = rollout.id;
    if (rollout.canaries > 0) body["canaries"] = rollout.canaries;
  }
  return runOf(server_->post("/runs", body, request.idempotency_key));
}

Result<std::vector<Run>> RemoteSite::runs(const lifecycle::RunFilter& filter) {
  std::vector<Run> out;
  ServerConnection::Query query{{"open", filter.open_only ? "true" : ""},
                                {"limit", ""},
                                {"cursor", filter.before > 0 ? std::to_string(filter.before) : ""},
                                {"kind", filter.kind ? std::string(toString(*filter.kind)) : ""}};
  constexpr std::size_t kPage = 1'000;
  while (out.size() < filter.limit) {
    query[1].second = std::to_string(std::min(kPage, filter.limit - out.size()));
    TRY(answer, server_->get("/runs", query));
    TRY(items, itemsOf(answer));
    for (const auto& item : *items) {
      TRY(run, runFrom(item));
      out.push_back(std::move(run));
    }
    query[2].second = textOf(answer, "next");
    if (query[2].second.empty() || items->empty()) break;
  }
  return out;
}

Result<Run> RemoteSite::run(const std::string& id) { return runOf(server_->get(runPath(id))); }

Result<app::RunEvents> RemoteSite::followRun(const std::string& id, std::int64_t after,
                                             std::size_t limit) {
  app::RunEvents out;
  TRY(answer, server_->get(runPath(id) + "/events",
                           {{"after", std::to_string(after)}, {"limit", std::to_string(limit)}}));
  TRY(items, itemsOf(answer));
  TRY(events, madeOf(*items, eventFrom));
  out.events = std::move(events);
  const auto next = answer.find("next");
  if (next == answer.end() || !next->is_number_integer())
    return fail(ErrorCode::Corrupt, server_->where() + " does not say how the run goes on");
  out.next = next->get<std::int64_t>();
  out.ended = flagOf(answer, "ended");
  // After the events: an end that they tell of is in the row that is read by then.
  TRY(now, run(id));
  out.run = std::move(now);
  return out;
}

Result<std::optional<lifecycle::Plan>> RemoteSite::planOfRun(const std::string& id) {
  const auto answer = server_->get(runPath(id) + "/plan");
  if (!answer && answer.error().code() == ErrorCode::NotFound)
    return std::optional<lifecycle::Plan>();
  if (!answer) return std::unexpected(answer.error());
  TRY(plan, lifecycle::Plan::fromJson(jsonText(*answer)));
  return std::optional(std::move(plan));
}

Result<Run> RemoteSite::say(const std::string& id, app::RunWord word) {
  const auto* order = word == app::RunWord::Cancel   ? "/cancel"
                      : word == app::RunWord::Pause  ? "/pause"
                      : word == app::RunWord::Resume ? "/resume"
                                                     : "/acknowledge";
  return runOf(server_->post(runPath(id) + order, json::object()));
}

Result<Run> RemoteSite::confirmRun(const std::string& id, const std::string& plan_hash) {
  return runOf(server_->post(runPath(id) + "/confirm", {{"plan_hash", plan_hash}}));
}

Result<Run> RemoteSite::approveRun(const std::string& id, const std::string& plan_hash) {
  return runOf(server_->post(runPath(id) + "/approve", {{"plan_hash", plan_hash}}));
}

Result<app::RolloutStatus> RemoteSite::rollout(const std::string& id) {
  TRY(answer, server_->get("/rollouts/" + (id.empty() ? "current" : io::percentEncode(id))));
  TRY(out, rolloutStatusFrom(answer));
  TRY(all, server_->get("/rollouts"));
  TRY(items, itemsOf(all));
  for (const auto& item : *items)
    if (const auto other = textOf(item, "id"); !other.empty() && other != out.rollout.id)
      out.others.insert(out.others.begin(), other);  // the newest comes first
  return std::move(out);
}

Result<Run> RemoteSite::resumeAccepting(const std::string& id, const std::string& reason) {
  return runOf(server_->post(runPath(id) + "/resume", {{"accept", reason}}));
}

Result<Run> RemoteSite::overrideRun(const std::string& id, const std::string& plan_hash,
                                    const std::string& reason) {
  return runOf(
      server_->post(runPath(id) + "/override", {{"plan_hash", plan_hash}, {"reason", reason}}));
}

}  // namespace muster::api
