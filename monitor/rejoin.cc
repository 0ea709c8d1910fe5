// SPDX-License-Identifier: Apache-2.0
#include "monitor/rejoin.h"

#include "base/json_input.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "lifecycle/model/facet_table.h"
#include "monitor/recovery.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::monitor {
namespace {

using namespace lifecycle;

constexpr std::size_t kJournalRead = 64;
constexpr std::chrono::hours kDay{24};

/// The facet for which the monitor drained it; nothing: the monitor did not.
std::optional<std::string> drainedFor(const Subject& subject, const FactSet& facts) {
  const auto* pool = facts.find(subject, FacetName(std::string(kPoolFacet)));
  if (!pool || pool->value != kPoolDrained) return std::nullopt;
  const auto evidence = jsonOrNone(pool->evidence, kKeptJson);
  if (!evidence.is_object() || evidence.value("ordered", nlohmann::json()) != true ||
      evidence.value("by_person", nlohmann::json()) == true ||
      evidence.value("cause", nlohmann::json()) != toString(ActionCause::Admission))
    return std::nullopt;
  const auto about = evidence.value("about", nlohmann::json());
  return about.is_string() ? about.get<std::string>() : std::string();
}

/// What the monitor may do to a node without being told: prove it again, and let it in.
bool isOfARejoin(const Action& action) {
  return action.disruption <= Disruption::Drain && stageOf(action.facet.facet) >= Stage::Gates &&
         stageOf(action.facet.facet) <= Stage::Pool;
}

}  // namespace

/// A certificate that is void because the gates were forgotten for a repair is proven anew on the
/// way back; one that was the reason itself has to be valid again.
bool reasonIsOver(const inventory::Cluster& cluster, const inventory::Node& node,
                  const FactSet& facts) {
  const auto about = drainedFor(Subject(node.name), facts);
  if (!about || unhealthy(cluster, node, facts)) return false;
  return stageOf(FacetName(*about)) != Stage::Certificate || !excluded(cluster, node, facts);
}

void Rejoin::notice(const FleetSnapshot& snapshot) {
  const auto now = clock_.steady();
  if (!std::exchange(looked_, true)) {
    const auto away = retry_state_.last_look == RetryState::Moment{}
                          ? RetryState::Moment::duration{}
                          : now - retry_state_.last_look;
    for (auto& [node, since] : retry_state_.well_since) since += away;
    std::erase_if(retry_state_.well_since,
                  [this](const auto& entry) { return !cluster_.findNode(entry.first); });
  }
  retry_state_.last_look = now;
  unhealthy_.clear();
  for (const auto& node : cluster_.nodes) {
    if (unhealthy(cluster_, node, snapshot.facts)) unhealthy_.insert(node.name);
    if (reasonIsOver(cluster_, node, snapshot.facts))
      retry_state_.well_since.try_emplace(node.name, now);
    else
      retry_state_.well_since.erase(node.name), retry_state_.refused.erase(node.name);
  }
}

Async<std::map<std::string, Action>> Rejoin::due(std::set<Subject> busy) {
  std::map<std::string, Action> out;
  if (!cluster_.monitor->rejoin_minutes || !looked_) co_return out;
  const std::chrono::minutes patience(*cluster_.monitor->rejoin_minutes);
  std::vector<NodeName> ready;
  const auto now = clock_.steady();
  for (const auto& [node, since] : retry_state_.well_since) {
    const auto refused = retry_state_.refused.find(node);
    const bool may_ask = refused == retry_state_.refused.end() || now >= refused->second.ask_again;
    if (now - since >= patience && may_ask && !busy.contains(Subject(node))) ready.push_back(node);
  }
  if (ready.size() > kRejoinsAtOnce) ready.resize(kRejoinsAtOnce);
  for (const auto& node : ready) {
    CO_TRY(actions, co_await plan(node));
    out.merge(actions);
  }
  co_return out;
}

Async<std::map<std::string, Action>> Rejoin::plan(NodeName node) {
  std::map<std::string, Action> out;
  CO_TRY(often, tooOften(node));
  if (!often.empty()) {
    refuse(node, often);
    co_return out;
  }
  std::set<Subject> only{Subject(node)};
  CO_TRY(facts, co_await engine_.observeNodes(only));
  CO_TRY(policy, policyOf(store_, only));
  auto made = makePlan(cluster_, facts, policy, phases_);
  if (!made) {
    refuse(node, made.error().str());
    co_return out;
  }
  for (auto& action : made->actions) {
    if (action.facet.subject.isCluster() || action.facet.facet.str().starts_with(kRecoveryPrefix))
      continue;  // a step that once failed
    if (!action.blocked.empty() || !isOfARejoin(action)) {
      refuse(node,
             action.blocked.empty()
                 ? fmt::format(
                       "its plan holds {}, which the monitor does not do by itself: `muster apply`",
                       action.id)
                 : fmt::format("{} is blocked: {}", action.id, action.blocked));
      co_return std::map<std::string, Action>();
    }
    action.reason = "the reason to drain it is over; " + action.reason;
    action.cause = ActionCause::Rejoin;
    out.emplace(action.id, std::move(action));
  }
  co_return out;
}

/// Answers why it must not come back by itself; empty: it may.
Result<std::string> Rejoin::tooOften(const NodeName& node) const {
  TRY(journal, store_.intentsOf(Subject(node), kJournalRead));
  std::size_t joins = 0, failures = 0;
  for (const auto& intent : journal) {
    if (intent.state == IntentState::Abandoned)
      continue;  // muster was killed in between: it has not joined
    if (intent.action.cause != ActionCause::Rejoin || intent.opened_at + kDay <= clock_.now())
      continue;
    if (intent.action.facet.facet.str() == kPoolFacet)
      ++joins;
    else if (intent.state == IntentState::Failed || intent.state == IntentState::Blocked)
      ++failures;
  }
  if (joins >= kRejoinsADay)
    return fmt::format("it has rejoined {} times within a day and was drained again: inspect it",
                       kRejoinsADay);
  if (failures >= kFailuresADay)
    return fmt::format("its gates have failed {} times within a day: inspect it", failures);
  return std::string();
}

void Rejoin::refuse(const NodeName& node, const std::string& why) {
  auto& refusal = retry_state_.refused[node];
  refusal.ask_again = clock_.steady() + kRefusedFor;
  if (std::exchange(refusal.why, why) == why) return;
  const Event event{
      0,
      clock_.now(),
      EventKind::Note,
      Subject(node),
      "",
      fmt::format("the reason to drain {} is over, but it does not rejoin: {}", node.str(), why)};
  if (auto stored = store_.addEvent(event); !stored)
    logWarning("monitor", "{}", stored.error().str());
}

}  // namespace muster::monitor
