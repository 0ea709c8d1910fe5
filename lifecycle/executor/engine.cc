// SPDX-License-Identifier: Apache-2.0
// Engine: observing, and the way into a run.
#include "lifecycle/executor/engine.h"

#include "base/async/await_all.h"
#include "base/async/deadline.h"
#include "base/async/semaphore.h"
#include "base/json_input.h"
#include "base/limits.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "lifecycle/executor/apply_run.h"
#include "lifecycle/executor/exception_boundary.h"
#include "lifecycle/executor/lease_keeper.h"
#include "lifecycle/model/quarantine.h"
#include "lifecycle/model/unread.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/system_error.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kFactsPerCommit = 2'000;
constexpr std::size_t kMaxChangesTold = 4;  ///< changed facets named in one event
constexpr std::size_t kFewSubjects = 8;     ///< asked for one by one
constexpr std::size_t kJournalRead =
    64;  ///< intents of a subject, newest first, among which an old finding's is looked for
constexpr std::chrono::minutes kUnwantedFor{2};  ///< a younger finding may be of a controller that
                                                 ///< knows a newer inventory, or a rollout's step

/// Reads all subjects through all phases; facts go to the store in batches, one sync to the disk
/// each.
class Observation {
 public:
  Observation(const Services& services, FactSet& facts)
      : services_(services), facts_(facts), slots_(kMaxConcurrentObservations) {}

  Task<void> readAll(std::vector<Subject> subjects) {
    std::vector<Task<void>> tasks;
    tasks.reserve(subjects.size());
    for (auto& subject : subjects) tasks.push_back(read(std::move(subject)));
    co_await async::awaitAll(std::move(tasks));
    flush();
  }

  const std::optional<Error>& trouble() const { return trouble_; }

 private:
  Task<void> read(Subject subject) {
    co_await slots_.acquire();
    std::exception_ptr cancelled;
    try {
      for (Phase* phase : services_.phases) {
        co_await readThrough(phase, subject);
      }
    } catch (...) {
      cancelled = std::current_exception();
    }
    slots_.release();
    if (cancelled) std::rethrow_exception(cancelled);
  }

  Task<void> readThrough(Phase* phase, Subject subject) {
    auto work = catchExceptions(fmt::format("{} observing {}", phase->name(), subject.str()),
                                phase->observe(subject));
    auto seen = co_await withDeadline(services_.clock, limitHere(services_.clock, kObserveDeadline),
                                      fmt::format("{} observing {}", phase->name(), subject.str()),
                                      std::move(work));
    if (!seen) {
      services_.emit(
          Event{0,
                {},
                EventKind::Note,
                subject,
                "",
                fmt::format("{} could not look: {}", phase->name(), seen.error().str())});
      forgetPoolOf(phase, subject);
      keep(unreadFact(subject, phase->name(), seen.error(), services_.clock.now()));
      co_return;
    }
    if (auto again = readAgainFact(subject, phase->name(), services_.clock.now());
        facts_.find(subject, again.facet))
      keep(std::move(again));
    std::vector<std::string> changes;
    for (auto& fact : *seen) {
      if (fact.value.empty()) continue;
      if (fact.observed_at == WallTime{}) fact.observed_at = services_.clock.now();
      if (isUnreadFacet(fact.facet)) {
        keep(std::move(fact));
        continue;
      }
      const auto before = facts_.value(fact.subject, fact.facet);
      if (before != fact.value)
        changes.push_back(before
                              ? fmt::format("{} '{}' → '{}'", fact.facet.str(), *before, fact.value)
                              : fmt::format("{} '{}'", fact.facet.str(), fact.value));
      facts_.put(fact);
      batch_.push_back(std::move(fact));
    }
    tell(subject, changes);
    if (batch_.size() >= kFactsPerCommit) flush();
  }

  /// Whether something could be read is a fact, too.
  void keep(Fact fact) {
    keepSince(fact, facts_);
    facts_.put(fact);
    batch_.push_back(std::move(fact));
  }

  /// An old place in the pool is no permission to disturb a node: what could not be read now is not
  /// known.
  void forgetPoolOf(Phase* phase, const Subject& subject) {
    const FacetName pool{std::string(kPoolFacet)};
    for (const auto& goal : phase->goals(services_.cluster, subject, facts_))
      if (goal.facet.facet == pool) {
        facts_.forget(subject, pool);
        return;
      }
  }

  void tell(const Subject& subject, const std::vector<std::string>& changes) {
    if (changes.empty()) return;
    std::string text;
    for (std::size_t i = 0; i < std::min(changes.size(), kMaxChangesTold); ++i)
      text += (i == 0 ? "" : ", ") + changes[i];
    if (changes.size() > kMaxChangesTold)
      text += fmt::format(" and {} more", changes.size() - kMaxChangesTold);
    told_.push_back(Event{0, {}, EventKind::Observed, subject, "", text});
  }

  void flush() {
    auto batch = std::exchange(batch_, {});
    const auto told = std::exchange(told_, {});
    if (batch.empty() || trouble_) return;
    if (auto stored = services_.store.putFacts(batch); !stored) {
      trouble_ = std::move(stored).error().within("storing what was observed");
      return;
    }
    // Behind the facts: whoever follows the log reads them when it names the node.
    for (const auto& event : told) services_.emit(event);
  }

  const Services& services_;
  FactSet& facts_;
  async::Semaphore slots_;
  std::vector<Fact> batch_;
  std::vector<Event> told_;  ///< of what is in the batch
  std::optional<Error> trouble_;
};

/// Findings of facets that were seen to be as wanted after the finding was raised.
Result<void> clearWhatIsMet(const Services& services, const FactSet& facts,
                            const std::vector<Finding>& findings) {
  std::map<FacetRef, WallTime> newest;
  for (const auto& finding : findings)
    newest[finding.facet] = std::max(newest[finding.facet], finding.at);
  for (const auto& [facet, at] : newest) {
    const Fact* fact = facts.find(facet.subject, facet.facet);
    if (!fact || fact->observed_at <= at) continue;
    for (Phase* phase : services.phases)
      for (const auto& goal : phase->goals(services.cluster, facet.subject, facts))
        if (goal.facet == facet && matches(goal.want, fact->value))
          if (auto cleared = services.store.clearFindings(facet);
              !cleared && cleared.error().code() != ErrorCode::Conflict)
            return cleared;  // what another controller works on, it clears
  }
  return {};
}

/// Of a finding from before findings said who raised them: the engine's own name the intent that
/// they are about.
Result<std::string> phaseByJournal(Store& store, const Finding& finding) {
  const auto evidence = jsonOrNone(finding.evidence, kKeptJson);
  const auto id =
      evidence.is_object() ? evidence.value("intent", nlohmann::json()) : nlohmann::json();
  if (!id.is_string()) return std::string();
  TRY(journal, store.intentsOf(finding.facet.subject, kJournalRead));
  for (const auto& intent : journal)
    if (intent.id == id.get_ref<const std::string&>() && intent.action.facet == finding.facet)
      return intent.action.phase;
  return std::string();
}

/// The phase whose action it is about; empty: it is not the engine's.
Result<std::string> phaseOf(Store& store, const Finding& finding) {
  if (finding.source.empty()) return phaseByJournal(store, finding);
  return finding.source.starts_with(kEngineSource) ? finding.source.substr(kEngineSource.size())
                                                   : std::string();
}

/// Facts can make a phase want less for a while (gates that a person's word stands for): without
/// any it wants all that is declared.
bool isWanted(const Services& services, const FacetRef& facet, const FactSet& facts) {
  if (!facet.subject.isCluster() && !services.cluster.findNode(facet.subject.node())) return false;
  const FactSet none;
  for (const Phase* phase : services.phases)
    for (const auto* known : {&facts, &none})
      for (const auto& goal : phase->goals(services.cluster, facet.subject, *known))
        if (goal.facet == facet) return true;
  return false;
}

/// The engine's own findings of facets that no phase wants any more: the profile was changed, the
/// node has left the inventory. Nobody would ever see those facets met. What others have raised is
/// theirs. docs/adr/0118
Result<void> endWhatNobodyWants(const Services& services, const FactSet& facts,
                                const std::vector<Finding>& findings) {
  std::map<std::pair<FacetRef, std::string>, bool> ends;  ///< those of one source end together
  for (const auto& finding : findings) {
    const auto [entry, is_first] = ends.try_emplace({finding.facet, finding.source}, true);
    if (!entry->second) continue;
    TRY(name, phaseOf(services.store, finding));
    const Phase* phase =
        name.empty() ? nullptr : services.phase(name);  // one that is not here cannot be asked
    const bool is_evaluated =
        phase && !phase->isOnDemand() && finding.at + kUnwantedFor <= services.clock.now();
    entry->second = is_evaluated && !(is_first && isWanted(services, finding.facet, facts));
  }
  std::erase_if(ends, [](const auto& entry) { return !entry.second; });
  if (ends.empty()) return {};
  TRY(open, services.store.openIntents());
  for (const auto& intent : open)  // ends with it, or when it has been looked at
    std::erase_if(
        ends, [&intent](const auto& entry) { return entry.first.first == intent.action.facet; });
  for (const auto& [which, unused] : ends) {
    const auto& [facet, source] = which;
    const auto cleared = services.store.clearFindingsOf(facet, source);
    if (cleared)
      services.emit(Event{
          0,
          {},
          EventKind::Note,
          facet.subject,
          "",
          fmt::format("no goal wants {} any more: its findings are cleared", facet.facet.str())});
    else if (cleared.error().code() != ErrorCode::Conflict)
      return cleared;
  }
  return {};
}

/// Of a few subjects and of the cluster, without reading those of the site; of all for many.
Result<std::vector<Intent>> openIntentsOf(Store& store, const std::set<Subject>& only) {
  if (only.empty() || only.size() > kFewSubjects) return store.openIntents();
  TRY(out, store.openIntentsOf(Subject::cluster()));
  for (const auto& subject : only) {
    if (subject.isCluster()) continue;
    TRY(of_subject, store.openIntentsOf(subject));
    std::move(of_subject.begin(), of_subject.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace

void Services::emit(Event event, bool stored) const {
  event.at = clock.now();
  if (!stored) {
    if (sink) sink(event);
    return;
  }
  auto show = [sink = sink, event](Result<std::int64_t> sequence) {
    auto shown = event;
    if (sequence)
      shown.sequence = *sequence;
    else
      logWarning("lifecycle", "an event could not be stored: {}", sequence.error().str());
    if (sink) sink(shown);
  };
  if (journal)
    journal->post<std::int64_t>([event](Store& to) { return to.addEvent(event); }, std::move(show));
  else
    show(store.addEvent(event));
}

Phase* Services::phase(std::string_view name) const {
  auto it = std::find_if(phases.begin(), phases.end(),
                         [name](Phase* phase) { return phase->name() == name; });
  return it == phases.end() ? nullptr : *it;
}

Async<FactSet> Engine::observe(Policy policy) {
  std::vector<Subject> subjects{Subject::cluster()};
  for (const auto& node : services_.cluster.nodes)
    if (policy.only.empty() || policy.only.contains(Subject(node.name)))
      subjects.emplace_back(node.name);
  co_return co_await observeAll(std::move(subjects));
}

Async<FactSet> Engine::observeNodes(std::set<Subject> nodes) {
  co_return co_await observeAll(std::vector<Subject>(nodes.begin(), nodes.end()));
}

Async<FactSet> Engine::observeAll(std::vector<Subject> subjects) {
  journal_->attach(co_await asio::this_coro::executor);
  const bool is_all = subjects.size() > services_.cluster.nodes.size();  // and the cluster itself
  const std::set<Subject> observed(subjects.begin(), subjects.end());
  CO_TRY(known, services_.store.facts());
  FactSet facts = std::move(known);
  Observation observation(services_, facts);
  co_await observation.readAll(std::move(subjects));
  co_await journal_->settled();
  if (observation.trouble()) co_return fail(*observation.trouble());
  CO_TRY(findings, services_.store.findings(nullptr));
  CO_TRY_OK(clearWhatIsMet(services_, facts, findings));
  if (!is_all)
    std::erase_if(findings, [&observed](const Finding& finding) {
      return !observed.contains(finding.facet.subject);
    });
  CO_TRY_OK(endWhatNobodyWants(services_, facts, findings));
  CO_TRY_OK(Quarantine(services_.store).reconcileFindings());
  co_return facts;
}

Async<ApplyReport> Engine::apply(Plan plan, Worker worker) {
  if (plan.inventory_digest != services_.cluster.digest)
    co_return fail(
        ErrorCode::Conflict,
        "the inventory has changed since the plan was made; look at it again with `muster plan`");
  journal_->attach(co_await asio::this_coro::executor);
  Services services = services_;
  services.worker = worker.name;
  if (!worker.user.empty()) {
    services.origin.user = worker.user;
    services.origin.host = worker.host;
    services.origin.command = worker.command;
  }
  ApplyRun run(std::move(services), std::move(plan));
  auto report = co_await run.run();
  co_await journal_->settled();
  co_return report;
}

Result<void> Engine::signOn() { return LeaseKeeper::signOn(services_); }

Async<void> Engine::holding(std::set<Subject> subjects, Worker worker,
                            std::function<Async<void>()> work) {
  using namespace asio::experimental::awaitable_operators;
  journal_->attach(co_await asio::this_coro::executor);
  Services services = services_;
  services.worker = worker.name;
  LeaseKeeper claims(services);
  CO_TRY_OK(claims.begin());
  std::vector<Subject> held;
  Result<void> outcome;
  for (const auto& subject : subjects) {
    auto claim = co_await claims.claim(subject);
    if (claim && claim->ours) {
      held.push_back(subject);
      continue;
    }
    outcome = claim ? fail(Error(ErrorCode::Conflict,
                                 fmt::format("{} works on {}", claim->holder, subject.str()))
                               .because(HoldRefusal::OthersWork))
                    : std::unexpected(std::move(claim).error());
    break;
  }
  if (outcome) {
    auto doing = work();
    auto renewals = claims.renewForever();
    auto both = std::move(doing) || std::move(renewals);  // the renewals end with the work
    auto first = co_await std::move(both);
    outcome = std::move(std::get<0>(first));
  }
  for (const auto& subject : held) co_await claims.release(subject);
  co_await journal_->settled();
  co_return outcome;
}

std::set<Subject> Engine::heldByOthers(const std::string& worker) const {
  std::set<Subject> out;
  for (const auto& [subject, holder] : services_.book->held)
    if (holder != worker) out.insert(subject);
  return out;
}

Policy policyOf(std::set<Subject> only, const std::vector<NodeName>& wipe_grants,
                const std::vector<Intent>& open) {
  Policy policy;
  policy.only = std::move(only);
  policy.wipe_allowed.insert(wipe_grants.begin(), wipe_grants.end());
  for (const auto& intent : open) {
    if (intent.action.disruption == Disruption::Wipe && !intent.action.facet.subject.isCluster())
      policy.wipe_allowed.insert(intent.action.facet.subject.node());
    if (!intent.operation.empty()) policy.interrupted.insert(intent.action.facet);
  }
  return policy;
}

Result<Policy> policyOf(Store& store, std::set<Subject> only) {
  TRY(allowed, store.wipeGrants());
  TRY(open, openIntentsOf(store, only));
  return policyOf(std::move(only), allowed, open);
}

}  // namespace muster::lifecycle
