// SPDX-License-Identifier: Apache-2.0
#include "api/remote_site.h"

#include "api/answer_values.h"
#include "api/answers.h"
#include "base/async/start.h"
#include "base/io/unix_client.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/version.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace muster::api {
namespace {

using lifecycle::Run;
using nlohmann::json;

constexpr std::chrono::minutes kPlanTimeout{10};  ///< of a large site of which nothing is known
constexpr std::size_t kMostAnswerBytes = 64u << 20;
constexpr std::size_t kMostPages = 1'000;
constexpr std::size_t kMostDetailBytes = 4'000;  ///< of a refusal, shown
constexpr std::size_t kMostShownDiagnostics = 20;
constexpr std::string_view kUnknownResource = "unknown-resource";

struct CodeRow {
  std::string_view word;
  ErrorCode code;
};
/// `code` of problem+json (docs/api.md).
constexpr std::array<CodeRow, 13> kCodeWords{{{"invalid-input", ErrorCode::InvalidInput},
                                              {"unauthenticated", ErrorCode::Denied},
                                              {"denied", ErrorCode::Denied},
                                              {"not-found", ErrorCode::NotFound},
                                              {kUnknownResource, ErrorCode::NotFound},
                                              {"method-not-allowed", ErrorCode::Unavailable},
                                              {"conflict", ErrorCode::Conflict},
                                              {"outcome-unknown", ErrorCode::Conflict},
                                              {"too-large", ErrorCode::InvalidInput},
                                              {"unavailable", ErrorCode::Unavailable},
                                              {"timeout", ErrorCode::Timeout},
                                              {"corrupt", ErrorCode::Corrupt},
                                              {"internal", ErrorCode::Internal}}};

/// "cluster.yaml:12:3: no such profile", of an inventory that the server could not read.
std::string diagnosticsText(const json& problem) {
  const auto found = problem.find("diagnostics");
  std::string out;
  if (found == problem.end() || !found->is_array()) return out;
  std::size_t shown = 0;
  for (const auto& each : *found) {
    if (!each.is_object() || shown++ == kMostShownDiagnostics) break;
    const auto line = each.value("line", json(0)), column = each.value("column", json(0));
    out += fmt::format("\n  {}:{}:{}: {}", textOf(each, "file"), jsonText(line), jsonText(column),
                       textOf(each, "text"));
  }
  return out;
}

/// What the server has refused, as an error of the same kind.
Error refusalFrom(const io::HttpResponse& response, const std::string& where) {
  const auto problem = jsonOrNone(response.body, kServerJson);
  if (!problem.is_object() || textOf(problem, "code").empty())
    return Error(ErrorCode::Unavailable,
                 fmt::format("{} answers {} and not as a muster does; see what listens there",
                             where, response.status))
        .retryable(response.status == 502 || response.status == 503);
  const auto word = textOf(problem, "code");
  const auto row = std::ranges::find(kCodeWords, word, &CodeRow::word);
  auto text = textOf(problem, "detail").substr(0, kMostDetailBytes);
  if (const auto advice = textOf(problem, "what_to_do"); !advice.empty()) text += "; " + advice;
  text += diagnosticsText(problem);
  return Error(row == kCodeWords.end() ? ErrorCode::Internal : row->code, std::move(text))
      .retryable(flagOf(problem, "retryable"));
}

std::string queryText(const std::vector<std::pair<std::string, std::string>>& query) {
  std::string out;
  for (const auto& [name, value] : query)
    if (!value.empty()) out += (out.empty() ? "?" : "&") + name + "=" + io::percentEncode(value);
  return out;
}

Result<Run> runOf(Result<json> answer) {
  if (!answer) return std::unexpected(std::move(answer).error());
  return runFrom(*answer);
}

std::string runPath(const std::string& id) { return "/runs/" + io::percentEncode(id); }

/// Of an answer that must be an object with a list.
Result<const json*> itemsOf(const json& answer) {
  const auto items = answer.is_object() ? answer.find("items") : answer.end();
  if (items == answer.end() || !items->is_array())
    return fail(ErrorCode::Corrupt, "the server's answer is no list");
  return &*items;
}

/// Of each item what `make` makes of it; the first error is the answer.
template <class Items, class Make>
auto madeOf(const Items& items, Make make) {
  using Value = typename std::invoke_result_t<Make, const json&>::value_type;
  using Values = Result<std::vector<Value>>;
  std::vector<Value> out;
  for (const json& item : items) {
    auto made = make(item);
    if (!made) return Values(std::unexpected(std::move(made).error()));
    out.push_back(std::move(*made));
  }
  return Values(std::move(out));
}

}  // namespace

RemoteSite::RemoteSite(RemoteSiteOptions options) : options_(std::move(options)) {
  if (options_.client) {
    client_ = std::move(options_.client);
  } else if (options_.socket.empty()) {
    io::TlsTrust trust;
    trust.ca_pem = options_.ca_pem;
    trust.identity = options_.identity;
    client_ = io::makeHttpClient(std::move(trust));
  } else {
    client_ = io::makeUnixHttpClient({options_.socket, options_.owners});
  }
}

std::string RemoteSite::where() const {
  return "the server at " + (options_.socket.empty() ? options_.url : options_.socket.string());
}

Result<std::unique_ptr<RemoteSite>> RemoteSite::connect(RemoteSiteOptions options) {
  auto site = std::unique_ptr<RemoteSite>(new RemoteSite(std::move(options)));
  const auto answer = site->get("/server");
  if (answer) {
    if (!answer->is_object() || textOf(*answer, "version").empty())
      return fail(ErrorCode::Corrupt, site->where() + " is no muster server");
    site->server_ = {textOf(*answer, "version"), textOf(*answer, "host"), textOf(*answer, "state"),
                     textOf(*answer, "inventory")};
    return site;
  }
  if (answer.error().code() != ErrorCode::NotFound) return std::unexpected(answer.error());
  // An older one does not say who it is; whether it is one, its first answer shows.
  TRY(me, site->get("/me"));
  if (!me.is_object() || textOf(me, "principal").empty())
    return fail(ErrorCode::Corrupt, site->where() + " is no muster server");
  site->is_older_ = true;
  return site;
}

Result<json> RemoteSite::ask(io::HttpRequest request, const std::string& resource) {
  const bool is_order = request.method != "GET";
  if (options_.socket.empty()) {
    TRY(url, io::Url::parse(options_.url));
    request.url = std::move(url);
  } else {
    request.url = {"http", "localhost", 80, ""};
  }
  request.url.target = std::string(kBasePath) + resource;
  request.max_body_bytes = kMostAnswerBytes;
  request.headers["Accept"] = "application/json";
  if (!options_.token.empty()) request.headers["Authorization"] = "Bearer " + options_.token;
  std::optional<Result<io::HttpResponse>> answer;
  std::exception_ptr thrown;
  async::start(io_, async::answerInto(answer, client_->send(std::move(request))),
               [&](std::exception_ptr broken) {
                 thrown = std::move(broken);
                 io_.stop();
               });
  io_.restart();
  io_.run();
  if (thrown) std::rethrow_exception(thrown);
  if (!answer) return fail(ErrorCode::Internal, where() + " was not asked");
  if (!*answer) {
    auto error = std::move(*answer).error();
    if (error.has(io::DialFailure::NobodyListens)) return fail(std::move(error));
    const bool may_have_acted =
        is_order && (error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::Timeout);
    return fail(std::move(error).within(
        where() + (may_have_acted ? " did not answer; it may have done what it was asked to: look "
                                    "before you ask again"
                                  : " did not answer")));
  }
  const auto& response = **answer;
  if (response.status == 204) return json(nullptr);
  if (response.status / 100 != 2) {
    const auto problem = jsonOrNone(response.body, kServerJson);
    if (problem.is_object() && textOf(problem, "code") == kUnknownResource &&
        !server_.version.empty())
      return fail(Error(ErrorCode::Unavailable,
                        fmt::format("{} (muster {}) does not know {}; this command is of muster "
                                    "{}: upgrade the server, or use --direct on its host",
                                    where(), server_.version,
                                    resource.substr(0, resource.find('?')), kVersion))
                      .retryable(false));
    auto refusal = refusalFrom(response, where());
    if (is_older_ && (response.status == 404 || response.status == 405))
      refusal.within(where() + " is of an older muster than this command");
    return fail(std::move(refusal));
  }
  auto parsed = parseJson(response.body, kServerJson);
  if (!parsed)
    return fail(ErrorCode::Corrupt, fmt::format("{} answers something else than JSON: {}", where(),
                                                parsed.error().text()));
  return std::move(*parsed);
}

Result<json> RemoteSite::get(const std::string& resource, const Query& query,
                             std::chrono::milliseconds timeout) {
  io::HttpRequest request;
  request.timeout = timeout;
  return ask(std::move(request), resource + queryText(query));
}

Result<json> RemoteSite::post(const std::string& resource, const json& body,
                              const std::string& idempotency_key) {
  io::HttpRequest request;
  request.method = "POST";
  request.timeout = std::chrono::seconds(60);
  request.headers["Content-Type"] = "application/json";
  if (!idempotency_key.empty()) request.headers["Idempotency-Key"] = idempotency_key;
  request.body = jsonText(body);
  return ask(std::move(request), resource);
}

Result<std::vector<json>> RemoteSite::list(const std::string& resource, Query query) {
  std::vector<json> out;
  query.emplace_back("limit", std::to_string(kMaxPage));
  query.emplace_back("cursor", "");
  for (std::size_t page = 0; page < kMostPages; ++page) {
    TRY(answer, get(resource, query));
    TRY(items, itemsOf(answer));
    for (const auto& item : *items) out.push_back(item);
    query.back().second = textOf(answer, "next");
    if (query.back().second.empty()) return out;
  }
  return fail(ErrorCode::Corrupt, where() + " answers a list without an end");
}

template <class Make>
auto RemoteSite::listOf(const std::string& resource, Query query, Make make) {
  const auto items = list(resource, std::move(query));
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
  TRY(answer, get("/site"));
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
    TRY(answer, get(resource));
    TRY(explanation, explanationFrom(answer));
    out.push_back(std::move(explanation));
  }
  return out;
}

Result<app::MadePlan> RemoteSite::plan(const app::PlanRequest& request,
                                       app::ProgressListener& progress) {
  if (request.refresh)
    progress.onNotice("muster: " + where() +
                      " plans from what it has observed; --direct observes the nodes first");
  TRY(answer, get("/plan/actions", {{"nodes", request.nodes}}, kPlanTimeout));
  if (!answer.is_object() || !answer.contains("plan") || !answer.contains("impact"))
    return fail(ErrorCode::Corrupt, where() + " answers no plan");
  TRY(plan, lifecycle::Plan::fromJson(jsonText(answer["plan"])));
  TRY(impact, impactFrom(answer["impact"]));
  const auto slowness = answer.find("slowness");
  return app::MadePlan{
      nullptr, std::move(plan), std::move(impact),
      slowness != answer.end() && slowness->is_number() ? slowness->get<double>() : 1};
}

Result<std::vector<lifecycle::Event>> RemoteSite::lastEvents(const std::string& subject,
                                                             std::size_t limit) {
  TRY(answer, get("/events", {{"subject", subject}, {"limit", std::to_string(limit)}}));
  TRY(items, itemsOf(answer));
  TRY(out, madeOf(*items, eventFrom));
  if (out.empty() && !subject.empty() && subject != lifecycle::Subject::kCluster)
    TRY_OK(get("/nodes/" + io::percentEncode(subject)));  // a mistyped name has no events, too
  return out;
}

Result<std::vector<lifecycle::Finding>> RemoteSite::findings(const std::string& nodes) {
  return listOf("/findings", {{"nodes", nodes}}, findingFrom);
}

Result<std::vector<lifecycle::Finding>> RemoteSite::clearFindings(
    const app::ClearFindingsRequest& request) {
  TRY(answer,
      post("/findings/clear",
           {{"nodes", request.nodes}, {"facet", request.facet}, {"reason", request.reason}}));
  TRY(items, itemsOf(answer));
  return madeOf(*items, findingFrom);
}

Result<std::map<NodeName, lifecycle::QuarantineEntry>> RemoteSite::quarantine() {
  TRY(answer, get("/quarantine"));
  TRY(items, itemsOf(answer));
  std::map<NodeName, lifecycle::QuarantineEntry> out;
  for (const auto& item : *items) {
    const auto since = parseWallTime(textOf(item, "since"));
    if (!since || textOf(item, "node").empty())
      return fail(ErrorCode::Corrupt, where() + " answers no quarantine");
    out[NodeName(textOf(item, "node"))] = {*since, textOf(item, "by"), textOf(item, "reason"),
                                           textOf(item, "evidence")};
  }
  return out;
}

Result<std::vector<app::QuarantinedNode>> RemoteSite::addToQuarantine(const std::string& nodes,
                                                                      const std::string& reason) {
  TRY(answer, post("/quarantine", {{"nodes", nodes}, {"reason", reason}}));
  TRY(items, itemsOf(answer));
  std::vector<app::QuarantinedNode> out;
  for (const auto& item : *items)
    out.push_back({NodeName(textOf(item, "node")), flagOf(item, "is_new"), textOf(item, "reason")});
  return out;
}

Result<void> RemoteSite::removeFromQuarantine(const NodeName& node, const std::string& reason) {
  TRY_OK(post("/quarantine/" + io::percentEncode(node.str()) + "/remove", {{"reason", reason}}));
  return {};
}

Result<app::PoolHolds> RemoteSite::poolHolds() {
  TRY(answer, get("/holds"));
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
  TRY(answer, post("/holds/override", {{"nodes", nodes}, {"reason", reason}}));
  TRY(items, itemsOf(answer));
  return madeOf(*items, poolHoldFrom);
}

Result<std::string> RemoteSite::principal() {
  TRY(answer, get("/me"));
  auto name = answer.is_object() ? textOf(answer, "principal") : std::string();
  if (name.empty()) return fail(ErrorCode::Corrupt, where() + " does not say who this is");
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
  return runOf(post("/runs", body, request.idempotency_key));
}

Result<std::vector<Run>> RemoteSite::runs(const lifecycle::RunFilter& filter) {
  std::vector<Run> out;
  Query query{{"open", filter.open_only ? "true" : ""},
              {"limit", ""},
              {"cursor", filter.before > 0 ? std::to_string(filter.before) : ""},
              {"kind", filter.kind ? std::string(toString(*filter.kind)) : ""}};
  constexpr std::size_t kPage = 1'000;
  while (out.size() < filter.limit) {
    query[1].second = std::to_string(std::min(kPage, filter.limit - out.size()));
    TRY(answer, get("/runs", query));
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

Result<Run> RemoteSite::run(const std::string& id) { return runOf(get(runPath(id))); }

Result<app::RunEvents> RemoteSite::followRun(const std::string& id, std::int64_t after,
                                             std::size_t limit) {
  app::RunEvents out;
  TRY(answer, get(runPath(id) + "/events",
                  {{"after", std::to_string(after)}, {"limit", std::to_string(limit)}}));
  TRY(items, itemsOf(answer));
  TRY(events, madeOf(*items, eventFrom));
  out.events = std::move(events);
  const auto next = answer.find("next");
  if (next == answer.end() || !next->is_number_integer())
    return fail(ErrorCode::Corrupt, where() + " does not say how the run goes on");
  out.next = next->get<std::int64_t>();
  out.ended = flagOf(answer, "ended");
  // After the events: an end that they tell of is in the row that is read by then.
  TRY(now, run(id));
  out.run = std::move(now);
  return out;
}

Result<std::optional<lifecycle::Plan>> RemoteSite::planOfRun(const std::string& id) {
  const auto answer = get(runPath(id) + "/plan");
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
  return runOf(post(runPath(id) + order, json::object()));
}

Result<Run> RemoteSite::confirmRun(const std::string& id, const std::string& plan_hash) {
  return runOf(post(runPath(id) + "/confirm", {{"plan_hash", plan_hash}}));
}

Result<Run> RemoteSite::approveRun(const std::string& id, const std::string& plan_hash) {
  return runOf(post(runPath(id) + "/approve", {{"plan_hash", plan_hash}}));
}

Result<app::RolloutStatus> RemoteSite::rollout(const std::string& id) {
  TRY(answer, get("/rollouts/" + (id.empty() ? "current" : io::percentEncode(id))));
  TRY(out, rolloutStatusFrom(answer));
  TRY(all, get("/rollouts"));
  TRY(items, itemsOf(all));
  for (const auto& item : *items)
    if (const auto other = textOf(item, "id"); !other.empty() && other != out.rollout.id)
      out.others.insert(out.others.begin(), other);  // the newest comes first
  return std::move(out);
}

Result<Run> RemoteSite::resumeAccepting(const std::string& id, const std::string& reason) {
  return runOf(post(runPath(id) + "/resume", {{"accept", reason}}));
}

Result<Run> RemoteSite::overrideRun(const std::string& id, const std::string& plan_hash,
                                    const std::string& reason) {
  return runOf(post(runPath(id) + "/override", {{"plan_hash", plan_hash}, {"reason", reason}}));
}

}  // namespace muster::api
