// SPDX-License-Identifier: Apache-2.0
#include "monitor/monitor.h"

#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/json.h"
#include "lifecycle/model/quarantine.h"
#include "lifecycle/rollout/status.h"
#include "monitor/health_phase.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>

namespace muster::monitor {
namespace {

using namespace lifecycle;
using nlohmann::json;
using std::chrono::seconds;

constexpr std::size_t kJournalRead = 64;  ///< the newest intents of a node that is in trouble
constexpr int kIdlePolls =
    2;  ///< a node that the plan has not held for so many looks is not worked on

/// Of the shape that the planner gives its own drains, so that either finds the other's intent.
Action drainAction(const inventory::Cluster& cluster, const Exclusion& exclusion,
                   const std::string& phase) {
  const FacetRef facet{Subject(exclusion.node), FacetName(std::string(kPoolFacet))};
  Action action;
  action.id = facet.str() + std::string(kDrainSuffix);
  action.facet = facet;
  action.phase = phase;
  action.from = std::string(kPoolIn);
  action.to = std::string(kPoolDrained);
  action.reason = exclusion.reason;
  action.cause = ActionCause::Admission;
  action.about = exclusion.facet.facet;
  action.disruption = Disruption::Drain;
  action.expected = kDrainExpected;
  action.deadline = drainDeadlineOf(cluster, facet.subject);
  return action;
}

/// In an order in which nothing waits for what comes after it: the engine takes a node's actions
/// one after the other.
void sortByNeeds(std::vector<Action>& actions) {
  std::set<std::string> left;
  for (const auto& action : actions) left.insert(action.id);
  std::vector<Action> sorted;
  while (!actions.empty()) {
    auto next = std::find_if(actions.begin(), actions.end(), [&left](const Action& action) {
      return std::none_of(action.needs.begin(), action.needs.end(),
                          [&left](const std::string& need) { return left.contains(need); });
    });
    if (next == actions.end())
      next = actions.begin();  // a circle, which no planner makes; the engine says so
    left.erase(next->id);
    sorted.push_back(std::move(*next));
    actions.erase(next);
  }
  actions = std::move(sorted);
}

/// Of nodes that a run works on nothing is concluded: what it does to them looks like trouble.
FactSet withoutPlaces(FactSet facts, const std::set<Subject>& busy) {
  for (const auto& subject : busy) facts.forget(subject, FacetName(std::string(kPoolFacet)));
  return facts;
}

std::string phaseThatWants(const inventory::Cluster& cluster, const Phases& phases,
                           const FacetRef& facet, const FactSet& facts) {
  for (const auto* phase : phases)
    for (const auto& goal : phase->goals(cluster, facet.subject, facts))
      if (goal.facet == facet) return std::string(phase->name());
  return {};
}

}  // namespace

Monitor::Monitor(MonitorServices services)
    : services_(std::move(services)),
      retry_state_(services_.retry_state ? services_.retry_state : std::make_shared<RetryState>()),
      own_engine_(services_.engine
                      ? nullptr
                      : std::make_unique<Engine>(services_.cluster, services_.all, services_.store,
                                                 services_.clock, services_.sink)),
      engine_(services_.engine ? *services_.engine : *own_engine_),
      fleet_poll_(services_.cluster, services_.light, services_.store, services_.clock,
                  services_.sink),
      breakers_(services_.store),
      alerts_(services_.store, services_.clock, services_.sink, retry_state_->waiting),
      rejoin_(services_.cluster, services_.all, services_.store, services_.clock, engine_,
              *retry_state_),
      changed_(std::make_shared<async::Event>()) {
  if (!own_engine_) return;  // whoever shares theirs has told it
  engine_.actFor(services_.origin);
  engine_.readConsoles(services_.console);
}

Task<void> Monitor::run() {
  using namespace asio::experimental::awaitable_operators;
  auto looking = pollLoop();
  auto acting = actLoop();
  auto rejoining = rejoinLoop();
  co_await (std::move(looking) && std::move(acting) && std::move(rejoining));
}

Task<void> Monitor::pollLoop() {
  while (true) {
    auto decided = co_await reconcile();
    if (!decided)
      note("keep could not finish its look: " + decided.error().str() + "; it tries again");
    if (decided) last_problem_.clear();
    co_await services_.clock.sleep(seconds(services_.cluster.monitor->interval_seconds));
  }
}

Async<Decision> Monitor::reconcile() {
  CO_TRY(snapshot, co_await fleet_poll_.poll());
  CO_TRY(states, breakers_.read());
  const auto busy = engine_.heldByOthers(std::string(kMonitorWorker));
  auto decision = busy.empty()
                      ? decide(services_.cluster, snapshot.facts, states)
                      : decide(services_.cluster, withoutPlaces(snapshot.facts, busy), states);
  rejoin_.notice(snapshot);
  CO_TRY_OK(releaseFinished());
  CO_TRY_OK(applyDecision(snapshot, decision, busy.empty()));
  co_return std::move(decision);
}

/// Beside the looks: a node that answers slowly keeps nobody in a pool who must leave it.
Task<void> Monitor::rejoinLoop() {
  while (true) {
    std::set<Subject> busy = claimed_by_others_;
    for (const auto& [id, action] : wanted_) busy.insert(action.facet.subject);
    auto due = co_await rejoin_.due(std::move(busy));
    if (due) rejoining_ = std::move(*due);
    if (!due) note("keep could not plan who comes back: " + due.error().str() + "; it tries again");
    co_await services_.clock.sleep(seconds(services_.cluster.monitor->interval_seconds));
  }
}

/// Everything that follows from a look, but the drains and repairs themselves.
Result<void> Monitor::applyDecision(const FleetSnapshot& snapshot, const Decision& decision,
                                    bool knows_all) {
  const auto now = services_.clock.now();
  for (const auto& trip : decision.trips) TRY_OK(breakers_.trip(trip, now));
  if (knows_all && snapshot.troubles.empty()) TRY_OK(breakers_.forgetHealthy(decision.in_trouble));
  Quarantine quarantine(services_.store);
  for (const auto* list : {&decision.drain, &decision.quarantine})
    for (const auto& exclusion : *list) {
      if (!exclusion.quarantine) continue;
      TRY(is_new, quarantine.add(exclusion.node,
                                 {now, "muster monitor", exclusion.reason, exclusion.evidence}));
      (void)is_new;
    }
  TRY_OK(quarantine.reconcileFindings());
  TRY_OK(alerts_.raise(decision));
  TRY_OK(alerts_.clearResolved(snapshot, breakers_));
  TRY_OK(want(snapshot, decision));
  alerts_.waiting(deferred_);
  return writeHeartbeat(decision, snapshot);
}

/// A repair of a node that no longer takes jobs, if the inventory lets the monitor do it.
std::optional<Action> Monitor::repairOf(const inventory::Node& node, const FactSet& facts) const {
  const Subject subject(node.name);
  const auto& allowed = services_.cluster.monitor->repairs;
  const auto pool = facts.value(subject, FacetName(std::string(kPoolFacet)));
  if (pool != kPoolDrained ||
      facts.value(subject, FacetName(std::string(kQuarantineFacet))) != kQuarantineNone)
    return std::nullopt;
  for (const auto* phase : services_.all)
    for (const auto& goal : phase->goals(services_.cluster, subject, facts)) {
      const auto* fact = facts.find(subject, goal.facet.facet);
      if (!fact || goal.disruption != Disruption::Reset || !goal.blocked.empty()) continue;
      const auto action = actionWordOf(*fact);
      const bool may =
          (action == toString(HealthAction::Reset) &&
           std::find(allowed.begin(), allowed.end(), inventory::Repair::Reset) != allowed.end()) ||
          (action == toString(HealthAction::Reboot) &&
           std::find(allowed.begin(), allowed.end(), inventory::Repair::Reboot) != allowed.end());
      if (!may) continue;
      return Action{goal.facet.str(),
                    goal.facet,
                    std::string(phase->name()),
                    fact->value,
                    goal.want,
                    goal.why,
                    goal.disruption,
                    goal.expected,
                    goal.deadline,
                    {},
                    "",
                    ActionCause::Repair,
                    goal.facet.facet};
    }
  return std::nullopt;
}

/// What is to be done, each once: drains, repairs, and what already runs and is neither over nor in
/// vain.
std::map<std::string, Action> Monitor::actionsFor(const FleetSnapshot& snapshot,
                                                  const Decision& decision) {
  std::map<std::string, Action> now;
  for (const auto& [id, action] : wanted_) {
    const auto node = action.facet.subject.node();
    if (action.cause == ActionCause::Rejoin) {
      if (rejoin_.isRight(node)) now.emplace(id, action);
      continue;
    }
    const bool own_end =
        action.disruption != Disruption::Drain;  // repairs and recovery end by themselves
    if (own_end || decision.in_trouble.contains(node) || decision.unknown.contains(node))
      now.emplace(id, action);
  }
  // The words of the first reason stay: a running drain is not begun again because a second symptom
  // came.
  for (const auto& exclusion : decision.drain) {
    const FacetRef facet{Subject(exclusion.node), FacetName(std::string(kPoolFacet))};
    auto action =
        drainAction(services_.cluster, exclusion,
                    phaseThatWants(services_.cluster, services_.light, facet, snapshot.facts));
    if (!isBackingOff(action.id)) now.try_emplace(action.id, std::move(action));
  }
  for (const auto& node : services_.cluster.nodes) {
    if (!decision.in_trouble.contains(node.name)) continue;
    auto action = repairOf(node, snapshot.facts);
    if (!action || isBackingOff(action->id) || isHeldByPerson(snapshot, node.name, action->id))
      continue;
    now.try_emplace(action->id, std::move(*action));
  }
  return now;
}

/// Somebody may have his hands in the machine: nothing is switched there, and what would be waits
/// for him.
bool Monitor::isHeldByPerson(const FleetSnapshot& snapshot, const NodeName& node,
                             const std::string& action) {
  const auto held = heldByPerson(snapshot.facts, node);
  if (!held.empty())
    deferred_[node] = fmt::format("the monitor does not touch {}: {}", action, held);
  return !held.empty();
}

bool Monitor::isBackingOff(const std::string& id) const {
  const auto found = retry_state_->backoff.find(id);
  return found != retry_state_->backoff.end() &&
         services_.clock.steady() < found->second.not_before;
}

/// Not known is not out.
bool Monitor::takesNoJobs(const FleetSnapshot& snapshot, const inventory::Node& node) const {
  const auto pool = snapshot.facts.value(Subject(node.name), FacetName(std::string(kPoolFacet)));
  return !mayTakeJobs(pool) && (pool || services_.cluster.profileOf(node).pool.empty());
}

/// What an earlier monitor has begun of recovery is brought to its end, whatever the policy says
/// now: between off and on a machine has no power, and a flash goes on without anybody. What it had
/// only noted is done where it still may be.
Result<void> Monitor::resumeRecovery(const FleetSnapshot& snapshot, Actions& now) {
  if (!services_.recovery) return {};
  TRY(open, services_.store.openIntents());
  for (const auto& intent : open) {
    const auto& action = intent.action;
    const auto& subject = action.facet.subject;
    if (action.cause != ActionCause::Recovery || subject.isCluster() || isBackingOff(action.id))
      continue;
    const auto* node = services_.cluster.findNode(subject.node());
    if (!node) continue;
    const bool may_begin =
        !services_.cluster.monitor->recovery.empty() && takesNoJobs(snapshot, *node);
    if (intent.operation.empty() && (!may_begin || isHeldByPerson(snapshot, node->name, action.id)))
      continue;
    if (!now.try_emplace(action.id, action).second) continue;
    if (const auto rung = rungOf(action.facet)) services_.recovery->ask(subject, *rung);
  }
  return {};
}

/// The next step for nodes with an error that take no jobs. What is under way is not stepped over.
Result<void> Monitor::recover(const FleetSnapshot& snapshot, std::map<std::string, Action>& now) {
  if (!services_.recovery || services_.cluster.monitor->recovery.empty()) return {};
  TRY(findings, services_.store.findings(nullptr));
  TRY(held, Quarantine(services_.store).entries());
  std::set<Subject> asked = claimed_by_others_;
  for (const auto& [id, action] : now) asked.insert(action.facet.subject);
  for (const auto& finding : findings) {
    const auto& subject = finding.facet.subject;
    if (finding.severity != Severity::Error || subject.isCluster() ||
        !asked.insert(subject).second || held.contains(subject.node()))
      continue;
    const auto* node = services_.cluster.findNode(subject.node());
    if (!node || !takesNoJobs(snapshot, *node)) continue;
    TRY(journal, services_.store.intentsOf(subject, kJournalRead));
    auto step = nextStep(journal, services_.cluster.monitor, services_.clock.now());
    if (!step || isBackingOff(step->action.id)) continue;
    if (isHeldByPerson(snapshot, node->name,
                       "recovery (" + std::string(toString(step->rung)) + ")"))
      continue;
    if (step->rung == inventory::Rung::Quarantine) {
      TRY(is_new, Quarantine(services_.store)
                      .add(node->name,
                           {services_.clock.now(), "muster monitor", step->why, finding.evidence}));
      (void)is_new;
      continue;
    }
    if (step->rung != inventory::Rung::Retry) services_.recovery->ask(subject, step->rung);
    now.emplace(step->action.id, std::move(step->action));
  }
  return {};
}

/// Intents of ours that are open and lead nowhere: the node is well again, or another monitor was
/// stopped after the last step.
Result<std::set<std::string>> Monitor::orphanedIntents(const std::map<std::string, Action>& actions,
                                                       const Decision& decision) {
  std::set<std::string> out;
  subjects_to_end_.clear();
  TRY(open, services_.store.openIntents());
  for (const auto& intent : open) {
    const auto& action = intent.action;
    const bool ours = action.cause != ActionCause::Declared;
    if (!ours || isClaimedByOther(action.facet.subject) || actions.contains(action.id) ||
        action.facet.subject.isCluster() || decision.unknown.contains(action.facet.subject.node()))
      continue;
    out.insert(action.id);
    subjects_to_end_.insert(action.facet.subject);
  }
  return out;
}

/// Nodes that the running plan has done with, while it waits for others: their actions are no
/// longer wanted, and may be again. The plan holds a node's claim from its first action to its
/// last.
Result<void> Monitor::releaseFinished() {
  claimed_by_others_.clear();
  TRY(claims, services_.store.claims());
  for (const auto& claim : claims)
    if (!claim.ours && claim.holder != services_.origin.holder)
      claimed_by_others_.insert(claim.subject);
  claimed_by_others_.merge(engine_.heldByOthers(std::string(kMonitorWorker)));
  if (!acting_) return {};
  std::set<Subject> over;
  for (const auto& [id, action] : wanted_) {
    const auto& subject = action.facet.subject;
    auto& idle = watched_[id].idle;
    if (services_.store.fenceOf(subject) != 0 && !isClaimedByOther(subject)) {
      idle = 0;
      continue;
    }
    TRY(end, endOf(id, action));
    if (end || isClaimedByOther(subject) || ++idle >= kIdlePolls) over.insert(subject);
  }
  for (auto it = wanted_.begin(); it != wanted_.end();) {
    const auto& [id, action] = *it;
    if (!over.contains(action.facet.subject)) {
      ++it;
      continue;
    }
    TRY(end, endOf(id, action));
    if (end || !isClaimedByOther(action.facet.subject)) recordResult(id, end == IntentState::Done);
    fleet_poll_.invalidate(action.facet.subject);
    watched_.erase(id);
    it = wanted_.erase(it);
  }
  return {};
}

/// How a wanted action has ended since it came to be wanted, by the journal: facts also hold what
/// was true before.
Result<std::optional<IntentState>> Monitor::endOf(const std::string& id,
                                                  const Action& action) const {
  TRY(journal, services_.store.intentsOf(action.facet.subject, kJournalRead));
  const auto newest = std::find_if(journal.begin(), journal.end(),
                                   [&id](const Intent& intent) { return intent.action.id == id; });
  if (newest == journal.end() || newest->state == IntentState::Open)
    return std::optional<IntentState>();
  const auto known = watched_.find(id);
  if (known != watched_.end() && known->second.last_end == newest->id)
    return std::optional<IntentState>();
  return std::optional(newest->state);
}

/// Remembers of what is newly wanted how it ended last.
Result<void> Monitor::watch(const Actions& now) {
  std::map<std::string, Watch> watched;
  for (const auto& [id, action] : now) {
    auto& entry = watched[id];
    if (const auto known = watched_.find(id); known != watched_.end()) {
      entry.last_end = known->second.last_end;
      continue;
    }
    TRY(journal, services_.store.intentsOf(action.facet.subject, kJournalRead));
    const auto newest =
        std::find_if(journal.begin(), journal.end(), [&id = id](const Intent& intent) {
          return intent.action.id == id && intent.state != IntentState::Open;
        });
    if (newest != journal.end()) entry.last_end = newest->id;
  }
  watched_ = std::move(watched);
  return {};
}

/// Ways back that were planned since the last look, of nodes that are well still. What belongs
/// together is tried again together.
void Monitor::addRejoins(Actions& now) {
  const auto planned = std::exchange(rejoining_, {});
  std::set<Subject> not_now;
  for (const auto& [id, action] : planned)
    if (isBackingOff(id) || !rejoin_.isWell(action.facet.subject.node()))
      not_now.insert(action.facet.subject);
  for (const auto& [id, action] : wanted_) not_now.insert(action.facet.subject);
  for (const auto& [id, action] : planned)
    if (!not_now.contains(action.facet.subject)) now.try_emplace(id, action);
}

Result<void> Monitor::want(const FleetSnapshot& snapshot, const Decision& decision) {
  deferred_.clear();
  auto now = actionsFor(snapshot, decision);
  addRejoins(now);
  TRY_OK(resumeRecovery(snapshot, now));
  TRY_OK(recover(snapshot, now));
  std::erase_if(now, [this](const auto& entry) {
    return isClaimedByOther(entry.second.facet.subject);
  });  // theirs until they let go
  TRY(left, orphanedIntents(now, decision));
  const bool same = now.size() == wanted_.size() &&
                    std::equal(now.begin(), now.end(), wanted_.begin(),
                               [](const auto& a, const auto& b) { return a.first == b.first; });
  if (same && (acting_ || left.empty())) return {};
  TRY_OK(watch(now));
  wanted_ = std::move(now);
  intents_to_end_ = std::move(left);
  for (const auto& [id, action] : wanted_) fleet_poll_.invalidate(action.facet.subject);
  for (const auto& subject : subjects_to_end_) fleet_poll_.invalidate(subject);
  changed_->set();
  return {};
}

/// Without what the last plan has brought to its end before it was dropped. It is made from the
/// facts of this moment, so that a node on which another controller has worked is not left alone as
/// one that has moved since.
Result<Plan> Monitor::planOf(const Actions& actions) const {
  Plan plan;
  plan.inventory_digest = services_.cluster.digest;
  plan.policy.only = subjects_to_end_;
  plan.policy.intents_to_end = intents_to_end_;
  std::set<std::string> done;
  for (const auto& [id, action] : actions) {
    plan.policy.only.insert(action.facet.subject);
    TRY(end, endOf(id, action));
    if (end == IntentState::Done) done.insert(id);
    if (end) continue;
    TRY(facts, services_.store.factsOf(action.facet.subject));
    for (const auto& fact : facts)
      plan.facts_used.emplace(FacetRef{fact.subject, fact.facet}, fact.value);
    plan.facts_used.emplace(action.facet, "");
    plan.actions.push_back(action);
  }
  for (auto& action : plan.actions)
    std::erase_if(action.needs, [&done](const std::string& need) { return done.contains(need); });
  sortByNeeds(plan.actions);
  plan.facts_digest = digestOf(plan.facts_used);
  return plan;
}

Task<void> Monitor::actLoop() {
  using namespace asio::experimental::awaitable_operators;
  while (true) {
    if (changed_->isSet()) changed_ = std::make_shared<async::Event>();
    const auto changed = changed_;
    if (wanted_.empty() && intents_to_end_.empty()) {
      co_await changed->wait();
      continue;
    }
    auto plan = planOf(wanted_);
    if (!plan) {
      note("the monitor could not act: " + plan.error().str() + "; it tries again");
      co_await services_.clock.sleep(seconds(1));
      continue;
    }
    auto work = engine_.apply(*plan, {.name = std::string(kMonitorWorker)});
    auto wait = changed->wait();
    auto either = std::move(work) || std::move(wait);
    acting_ = true;
    auto first = co_await std::move(either);
    acting_ = false;
    if (first.index() != 0) continue;  // another plan; what this one began is taken up
    const auto& report = std::get<0>(first);
    const auto recorded = report ? recordResults() : Result<void>(fail(report.error()));
    if (!recorded)
      note("the monitor could not act: " + recorded.error().str() + "; it tries again");
    for (const auto& action : plan->actions) fleet_poll_.invalidate(action.facet.subject);
    wanted_.clear();  // the next look says what is left
    watched_.clear();
    intents_to_end_.clear();
    co_await services_.clock.sleep(seconds(1));
  }
}

/// What did not end well is tried again later and later; what did is forgotten.
void Monitor::recordResult(const std::string& id, bool well) {
  if (well) {
    retry_state_->backoff.erase(id);
    return;
  }
  auto& backoff = retry_state_->backoff[id];
  backoff.not_before = services_.clock.steady() + backoff.next;
  backoff.next = std::min(backoff.next * 2, kLongestRetry);
}

/// Of a plan that has ended.
Result<void> Monitor::recordResults() {
  for (const auto& [id, action] : wanted_) {
    TRY(end, endOf(id, action));
    recordResult(id, end == IntentState::Done);
  }
  return {};
}

void Monitor::note(std::string text) {
  if (std::exchange(last_problem_, text) == text) return;
  logWarning("monitor", "{}", text);
  Event event{0, services_.clock.now(), EventKind::Note, Subject::cluster(), "", std::move(text)};
  if (auto stored = services_.store.addEvent(event); stored) event.sequence = *stored;
  if (services_.sink) services_.sink(event);
}

// ---- what others are told
// -----------------------------------------------------------------------------------------------

Result<void> Monitor::writeHeartbeat(const Decision& decision, const FleetSnapshot& snapshot) {
  json troubles = json::array();
  for (const auto& [trouble, node] : snapshot.troubles) troubles.push_back(trouble);
  const json heartbeat = {{"at", muster::toString(services_.clock.now())},
                          {"holder", services_.origin.holder},
                          {"draining", decision.drain.size()},
                          {"held_back", decision.suppressed.size()},
                          {"troubles", std::move(troubles)}};
  return services_.store.putValue(std::string(kMonitorHeartbeat), canonical(heartbeat));
}

}  // namespace muster::monitor
