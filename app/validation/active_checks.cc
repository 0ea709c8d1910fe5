// SPDX-License-Identifier: Apache-2.0
#include "app/validation/active_checks.h"

#include "app/controller/controller.h"
#include "base/async/await_all.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/limits.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/monitor.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/json.h"
#include "validate/checks/checks.h"
#include "validate/gates.h"
#include "validate/validate.h"
#include "wire/task_params.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

namespace {

constexpr std::chrono::seconds kIdleLook{20};
constexpr std::chrono::milliseconds kWantedPoll{1'000}, kReportPoll{250};
/// A hold is so long, and made longer when less than half is left: of a process that was killed it
/// ends by itself soon.
constexpr std::chrono::seconds kHoldFor{120};
/// A check that runs when a job wants the node may end by itself so long; then its agent ends it
/// with all that it has started, and the node is given back.
constexpr std::chrono::seconds kMayEnd{5};
constexpr std::chrono::minutes kAfterGivingWay{5};  ///< until the pool is looked at again
constexpr std::chrono::seconds kAgentSlack{30};     ///< beyond a check's deadline
constexpr int kTellAfterFailures = 3;
constexpr std::string_view kSource = "active-check";
constexpr std::string_view kWorker = "active checks";

FacetRef nodeFacet(const NodeName& node) {
  return {Subject(node), FacetName(std::string(kSource))};
}
FacetRef troubleOf(const std::string& pool) {
  return {Subject::cluster(), FacetName("active-checks." + pool)};
}

/// How the checks of one node ended.
struct CheckEnd {
  bool gave_way = false;
  std::vector<wire::CheckResult> failed;
};

/// What the nodes of one round share.
struct Shared {
  std::optional<std::chrono::steady_clock::time_point> wanted_since;
  ActiveCheckRound round;
};

struct NodeCheck {
  ActiveCheckServices services;
  std::string pool, gate;
  NodeName node;
  std::string stamp;  ///< makes the ids of its tasks its own
  std::vector<validate::CheckRequest> requests;
  std::shared_ptr<Shared> shared;
  WallTime held_until{};
};
using NodeCheckPtr = std::shared_ptr<NodeCheck>;

Async<void> prolong(NodeCheckPtr check) {
  const auto now = check->services.clock.now();
  if (check->held_until - now > kHoldFor / 2) co_return Result<void>();
  CO_TRY(held, co_await check->services.holds.hold(check->pool, check->node, now + kHoldFor));
  if (!held) co_return fail(ErrorCode::Conflict, "its hold has ended");
  check->held_until = now + kHoldFor;
  co_return Result<void>();
}

/// Nothing: it gave way, or its agent has lost it, which says nothing of the node's health.
Async<std::optional<wire::CheckResult>> oneCheck(NodeCheckPtr check, validate::CheckRequest request,
                                                 int attempt) {
  using Nothing = std::optional<wire::CheckResult>;
  auto& services = check->services;
  const auto id = fmt::format("active-{}/{}#{}", check->stamp, request.id, attempt);
  wire::RunChecksParams params;
  params.checks.push_back({request.id, jsonOrNone(request.params, kKeptJson), request.deadline});
  CO_TRY_OK(services.agents.submit(
      check->node, {id, wire::TaskKind::RunChecks, toJson(params), request.deadline}));
  const auto limit = services.clock.steady() + request.deadline + kAgentSlack;
  for (;;) {
    const auto report = services.agents.report(check->node, id);
    const bool is_over = report && wire::isFinished(report->phase);
    if (is_over && report->phase == wire::TaskPhase::Failed) {
      if (report->code == ErrorCode::Unavailable) co_return Nothing();
      wire::CheckResult result;
      result.id = request.id;
      result.status = report->code == ErrorCode::Timeout ? wire::CheckStatus::Timeout
                                                         : wire::CheckStatus::Error;
      result.text = report->text;
      co_return Nothing(std::move(result));
    }
    if (is_over) {
      CO_TRY(results, wire::parseCheckResults(report->result));
      for (auto& result : results)
        if (result.id == request.id) co_return Nothing(std::move(result));
      wire::CheckResult none;
      none.id = request.id;
      none.text = "its agent told nothing of it";
      co_return Nothing(std::move(none));
    }
    const auto now = services.clock.steady();
    const auto& wanted = check->shared->wanted_since;
    if ((wanted && now - *wanted >= kMayEnd) || now >= limit) {
      services.agents.abandon(check->node, id);
      co_return Nothing();
    }
    CO_TRY_OK(co_await prolong(check));
    co_await services.clock.sleep(kReportPoll);
  }
}

/// One after the other, so that a job waits for one of them at most; what has failed runs once
/// more.
Async<CheckEnd> allChecks(NodeCheckPtr check) {
  CheckEnd end;
  for (const auto& request : check->requests)
    for (int attempt = 1; attempt <= 2; ++attempt) {
      if (check->shared->wanted_since) co_return CheckEnd{true, {}};
      CO_TRY_OK(co_await prolong(check));
      CO_TRY(result, co_await oneCheck(check, request, attempt));
      if (!result) co_return CheckEnd{true, {}};
      if (result->status == wire::CheckStatus::Pass) break;
      if (attempt == 2) end.failed.push_back(std::move(*result));
    }
  co_return std::move(end);
}

std::string wordsOf(const wire::CheckResult& result) {
  return fmt::format("{} ({}): {}", result.id, toString(result.status), result.text);
}

Result<void> conclude(const NodeCheck& check, const CheckEnd& end) {
  auto& services = check.services;
  auto& store = services.store;
  ActiveCheckRecord record{services.clock.now(), check.gate, {}};
  std::vector<std::string> words;
  for (const auto& result : end.failed) {
    record.failed.push_back(result.id);
    words.push_back(wordsOf(result));
  }
  const auto facet = nodeFacet(check.node);
  if (end.failed.empty()) {
    TRY_OK(store.clearFindings(facet));
  } else {
    const auto text = fmt::format("idle, it failed checks of gate {} twice: {}", check.gate,
                                  fmt::join(words, "; "));
    TRY_OK(store.addFinding(
        {facet, Severity::Error, text, "",
         std::string(validate::adviceFor(end.failed.front().id, end.failed.front().status)),
         record.at, std::string(kSource)}));
    if (services.revoke) TRY_OK(services.revoke(check.node, "muster monitor", text));
  }
  return store.putValue(activeCheckKey(check.node), toJson(record));
}

/// While the engine holds the node for this.
Async<void> heldCheck(NodeCheckPtr check) {
  auto& services = check->services;
  auto& round = check->shared->round;
  const auto until = services.clock.now() + kHoldFor;
  CO_TRY(held, co_await services.holds.hold(check->pool, check->node, until));
  if (!held) {
    ++round.gave_way;
    co_return Result<void>();
  }
  check->held_until = until;
  ++round.begun;
  auto end = co_await allChecks(check);
  auto released = co_await services.holds.release(check->pool, check->node);
  if (!end) co_return std::unexpected(std::move(end).error());
  if (end->gave_way) {
    ++round.gave_way;
    logInfo("active-check", "{}: gave way", check->node.str());
    co_return released;
  }
  ++(end->failed.empty() ? round.passed : round.failed);
  CO_TRY_OK(conclude(*check, *end));
  co_return released;
}

Task<void> checkOne(NodeCheckPtr check) {
  auto& services = check->services;
  const Worker worker{std::string(kWorker), "muster monitor", "",
                      "active check of " + check->node.str()};
  auto holding =
      services.engine.holding({Subject(check->node)}, worker, [check] { return heldCheck(check); });
  const auto done = co_await std::move(holding);
  if (done) co_return;
  if (done.error().has(HoldRefusal::OthersWork)) {
    ++check->shared->round.gave_way;
    co_return;
  }
  logWarning("active-check", "{}: {}", check->node.str(), done.error().str());
}

/// Where it cannot be asked whether a job waits, one might.
Task<void> watchJobs(ActiveCheckServices services, std::string pool,
                     std::shared_ptr<Shared> shared) {
  for (;;) {
    const auto wanted = co_await services.holds.isWanted(pool);
    if ((!wanted || *wanted) && !shared->wanted_since)
      shared->wanted_since = services.clock.steady();
    co_await services.clock.sleep(kWantedPoll);
  }
}

bool isReady(const ActiveCheckServices& services, const NodeName& node) {
  const auto state = services.agents.state(node);
  return state && state->mode == wire::Mode::Disk;
}

/// Nodes of the pool that have failed and were not seen to be well since. The finding of one that
/// has a certificate of later gates is over.
Result<std::size_t> failedNodes(const ActiveCheckServices& services, const std::string& pool) {
  std::size_t out = 0;
  TRY(findings, services.store.findings(nullptr));
  for (const auto& finding : findings) {
    const auto& subject = finding.facet.subject;
    if (finding.source != kSource || subject.isCluster()) continue;
    const auto* node = services.cluster.findNode(subject.node());
    TRY(facts, services.store.factsOf(subject));
    const bool is_well_again = std::ranges::any_of(facts, [&finding](const Fact& fact) {
      return fact.facet.str() == "certificate" && fact.value.starts_with("valid:") &&
             fact.observed_at > finding.at + kAfterGivingWay;
    });
    if (!node || is_well_again) {
      TRY_OK(services.store.clearFindings(finding.facet));
      continue;
    }
    out += services.cluster.profileOf(*node).pool == pool;
  }
  return out;
}

/// As the monitor's circuit breaker: where many fail, the nodes are usually not the cause.
Result<bool> hasFailedTooMuch(const ActiveCheckServices& services, const std::string& pool) {
  TRY(failed, failedNodes(services, pool));
  std::size_t size = 0;
  for (const auto& node : services.cluster.nodes)
    size += services.cluster.profileOf(node).pool == pool;
  const auto& breaker = services.cluster.monitor->breaker;
  const auto allowed = std::max(static_cast<std::size_t>(breaker.nodes),
                                size * static_cast<std::size_t>(breaker.percent) / 100);
  const auto source = std::string(kSource) + ".breaker";
  const auto cluster = Subject::cluster();
  TRY(known, services.store.findings(&cluster));
  const bool is_told = std::ranges::any_of(known, [&](const Finding& finding) {
    return finding.facet == troubleOf(pool) && finding.source == source;
  });
  const bool is_too_much = failed > 0 && failed >= allowed;
  if (!is_too_much && is_told) TRY_OK(services.store.clearFindingsOf(troubleOf(pool), source));
  if (!is_too_much || is_told) return is_too_much;
  TRY_OK(services.store.addFinding(
      {troubleOf(pool), Severity::Warning,
       fmt::format("{} idle nodes of pool {} have failed their checks, and monitor.breaker lets no "
                   "more: no further one is checked",
                   failed, pool),
       "", "look at one of them: `muster findings`; it goes on when they have passed their gates",
       services.clock.now(), source}));
  return true;
}

Result<std::map<NodeName, WallTime>> lastChecks(Store& store, const std::vector<NodeName>& nodes) {
  std::map<NodeName, WallTime> out;
  for (const auto& node : nodes) {
    TRY(kept, store.getValue(activeCheckKey(node)));
    if (!kept) continue;
    if (const auto record = parseActiveCheck(*kept)) out[node] = record->at;
  }
  return out;
}

const inventory::ActiveChecks* ruleOf(const inventory::Cluster& cluster, const std::string& pool) {
  const auto found = cluster.pools.find(pool);
  if (found == cluster.pools.end() || !found->second.slurm) return nullptr;
  const auto& rule = found->second.slurm->active_checks;
  return rule ? &*rule : nullptr;
}

}  // namespace

ActiveCheckServices activeCheckServices(Controller& controller, const inventory::Cluster& cluster) {
  return {cluster,
          controller.agents(),
          controller.store(),
          controller.engine(),
          controller.clock(),
          controller.idleHolds(),
          [&controller](const NodeName& node, const std::string& by, const std::string& reason) {
            return controller.certificates().revoke(node, by, reason);
          }};
}

std::string activeCheckKey(const NodeName& node) { return "active-check." + node.str(); }

std::string toJson(const ActiveCheckRecord& record) {
  return jsonText(nlohmann::json{
      {"at", muster::toString(record.at)}, {"gate", record.gate}, {"failed", record.failed}});
}

Result<ActiveCheckRecord> parseActiveCheck(std::string_view text) {
  const auto json = jsonOrNone(std::string(text), kKeptJson);
  const auto corrupt = [] { return fail(ErrorCode::Corrupt, "no record of an active check"); };
  if (!json.is_object() || !json.contains("at") || !json["at"].is_string() ||
      !json.contains("gate") || !json["gate"].is_string() || !json.contains("failed") ||
      !json["failed"].is_array())
    return corrupt();
  ActiveCheckRecord out;
  TRY(at, parseWallTime(json["at"].get<std::string>()));
  out.at = at;
  out.gate = json["gate"];
  for (const auto& each : json["failed"]) {
    if (!each.is_string()) return corrupt();
    out.failed.push_back(each);
  }
  return out;
}

std::vector<NodeName> dueForCheck(const inventory::ActiveChecks& rule,
                                  const std::vector<NodeName>& idle,
                                  const std::map<NodeName, WallTime>& last, WallTime now) {
  std::vector<std::pair<WallTime, NodeName>> due;
  for (const auto& node : idle) {
    const auto found = last.find(node);
    const auto before = found == last.end() ? WallTime{} : found->second;
    // One from the future is of a clock that was set back.
    if (before > now || now - before >= std::chrono::hours(rule.every_hours))
      due.emplace_back(before, node);
  }
  std::ranges::sort(due);
  const auto share =
      std::max<std::size_t>(1, idle.size() * static_cast<std::size_t>(rule.idle_percent) / 100);
  due.resize(std::min({due.size(), share, static_cast<std::size_t>(rule.nodes)}));
  std::vector<NodeName> out;
  for (auto& [at, node] : due) out.push_back(std::move(node));
  return out;
}

Async<ActiveCheckRound> checkIdleNodes(ActiveCheckServices services, std::string pool) {
  using namespace asio::experimental::awaitable_operators;
  const auto* rule = ruleOf(services.cluster, pool);
  if (!rule) co_return ActiveCheckRound{};
  CO_TRY(too_much, hasFailedTooMuch(services, pool));
  if (too_much) co_return ActiveCheckRound{};
  CO_TRY(idle, co_await services.holds.idle(pool));
  std::erase_if(idle, [&](const NodeName& node) { return !isReady(services, node); });
  CO_TRY(last, lastChecks(services.store, idle));
  const auto now = services.clock.now();
  const auto& gate = services.cluster.gates.at(rule->gate);
  auto shared = std::make_shared<Shared>();
  std::vector<Task<void>> checks;
  for (const auto& node : dueForCheck(*rule, idle, last, now)) {
    const auto& declared = *services.cluster.findNode(node);
    CO_TRY(requests, validate::localChecks(services.cluster, services.cluster.profileOf(declared),
                                           gate, slownessOf(services.clock)));
    if (requests.empty())
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("gate {} has no checks that a node of pool {} runs by itself",
                                 gate.name, pool));
    checks.push_back(checkOne(std::make_shared<NodeCheck>(NodeCheck{
        services, pool, gate.name, node, fmt::format("{}", now.time_since_epoch().count()),
        std::move(requests), shared})));
  }
  if (checks.empty()) co_return ActiveCheckRound{};
  auto all = async::awaitAll(std::move(checks));
  auto watch = watchJobs(services, pool, shared);
  auto both = std::move(all) || std::move(watch);
  co_await std::move(both);
  co_return shared->round;
}

namespace {

/// What one pool's looks leave to the next.
struct PoolWatch {
  std::chrono::steady_clock::time_point not_before{};
  int failures = 0;
  bool told = true;  ///< one of the process before is over as well
};

Task<void> lookOnce(ActiveCheckServices services, std::string pool,
                    std::shared_ptr<PoolWatch> watch) {
  const auto source = std::string(kSource) + ".scheduler";
  const auto round = co_await checkIdleNodes(services, pool);
  if (round && round->gave_way > 0) watch->not_before = services.clock.steady() + kAfterGivingWay;
  watch->failures = round ? 0 : watch->failures + 1;
  if (watch->failures == 1) logWarning("active-check", "{}: {}", pool, round.error().str());
  if (round && watch->told)
    watch->told = !services.store.clearFindingsOf(troubleOf(pool), source).has_value();
  if (watch->failures == kTellAfterFailures)
    watch->told = services.store
                      .addFinding({troubleOf(pool), Severity::Warning,
                                   "idle nodes cannot be checked: " + round.error().str(), "",
                                   "see that slurmctld answers, and that muster's user may make "
                                   "reservations there; or correct active_checks of the pool",
                                   services.clock.now(), source})
                      .has_value();
}

}  // namespace

Task<void> keepActiveChecks(ActiveCheckServices services) {
  std::map<std::string, std::shared_ptr<PoolWatch>> pools;
  for (const auto& [name, pool] : services.cluster.pools)
    if (ruleOf(services.cluster, name)) pools[name] = std::make_shared<PoolWatch>();
  while (pools.empty()) co_await services.clock.sleep(std::chrono::hours(1));
  bool is_swept = false, is_told = false;
  for (;;) {
    if (!is_swept) {
      const auto swept = co_await services.holds.releaseAll();
      is_swept = swept.has_value();
      if (!swept && !std::exchange(is_told, true))
        logWarning("active-check", "holds of an earlier process: {}", swept.error().str());
    }
    for (const auto& [pool, watch] : pools)
      if (is_swept && services.clock.steady() >= watch->not_before)
        co_await lookOnce(services, pool, watch);
    co_await services.clock.sleep(kIdleLook);
  }
}

}  // namespace muster::app
