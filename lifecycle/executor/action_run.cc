// SPDX-License-Identifier: Apache-2.0
// One action: aim → guard → journal → act until Done → verify → close. See engine.h for the order
// of commits.
#include "lifecycle/executor/action_run.h"

#include "base/async/deadline.h"
#include "base/io/crypto.h"
#include "base/limits.h"
#include "inventory/model/cluster.h"
#include "lifecycle/executor/exception_boundary.h"
#include "lifecycle/model/facet_table.h"
#include "lifecycle/model/json.h"
#include "lifecycle/model/orphaned_operation.h"
#include "lifecycle/model/pool_hold.h"

#include <algorithm>
#include <ranges>

namespace muster::lifecycle {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::hours kLongestAway{
    24};  ///< an action waits for what does not answer; then its own deadline goes on
constexpr milliseconds kAskPoolAgain{
    15'000};  ///< before a disturbance, while the pool does not answer

std::string newIntentId(const std::string& action_id) {
  std::string id = action_id;
  std::replace_if(
      id.begin(), id.end(), [](char c) { return c == '/' || c == '#' || c == ' '; }, '.');
  return id + "." + io::randomToken(9);
}

std::string seconds(std::chrono::steady_clock::duration duration) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

}  // namespace

ActionRun::ActionRun(const Services& services, LeaseKeeper& claims, FactSet& facts,
                     Intent template_intent, Action action, std::optional<Intent> open)
    : services_(services),
      claims_(claims),
      facts_(facts),
      phase_(services.phase(action.phase)),
      action_(std::move(action)),
      open_(std::move(open)),
      intent_(std::move(template_intent)),
      report_(services, facts, action_, intent_),
      wiped_facts_(services, facts) {}

/// The journaled part, up to what the outside did; then how it ended is written down.
Task<ActionResult> ActionRun::run() {
  started_ = services_.clock.steady();
  auto end = co_await execute();
  if (end.ended) co_return *end.ended;
  co_return co_await (end.error && write_failed_ && journaled_ ? keepOpen(*end.error)
                      : end.error                              ? failed(*end.error)
                      : !end.blocked.empty()                   ? blocked(end.blocked)
                                                               : done(""));
}

Task<ActionRun::Attempt> ActionRun::execute() {
  if (!phase_)
    co_return Attempt{.blocked = fmt::format("this muster has no phase '{}'; make the plan again",
                                             action_.phase)};
  if (auto why = refreshGoal()) co_return Attempt{.blocked = *why};
  if (open_) {
    auto end = co_await resumeIntent();
    if (end) co_return Attempt{.ended = end};
    if (journaled_ && intent_.operation.empty() &&
        disturbs()) {  // nothing was done yet, and who works on the node now was not asked
      if (auto why = co_await guardPool()) co_return Attempt{.blocked = *why};
    }
  }
  if (!journaled_) {
    if (auto why = co_await guard()) co_return Attempt{.blocked = *why};
    if (auto begun = co_await begin(); !begun)
      co_return Attempt{.error = std::move(begun).error().within("opening the journal")};
  }
  if (action_.disruption == Disruption::Wipe)
    if (auto forgotten = co_await wiped_facts_.forget(action_.facet); !forgotten)
      co_return Attempt{.error = std::move(forgotten).error().within("forgetting what is wiped")};
  auto driven = co_await drive();
  if (blocked_by_) co_return Attempt{.blocked = *blocked_by_};
  if (!driven && write_failed_) co_return Attempt{.error = driven.error()};
  if (!driven) {
    // What is true now replaces what was true before the attempt: a gate that failed must not keep
    // its old pass.
    (void)co_await observeFacet();
    co_return Attempt{.error = driven.error()};
  }
  auto confirmed = co_await confirm();
  if (!confirmed) co_return Attempt{.error = confirmed.error()};
  co_return Attempt{};
}

// ---- what it goes for, and whether it may
// ------------------------------------------------------------------------------

std::string ActionRun::wantNow() const {
  if (!isDrain())
    for (auto& goal : phase_->goals(services_.cluster, action_.facet.subject, facts_))
      if (goal.facet == action_.facet) return goal.want;
  return action_.to;
}

/// Asks the phase for the goal again: facts of this run may have moved it (engine.h). Answers why
/// it must not start.
std::optional<std::string> ActionRun::refreshGoal() {
  if (isDrain()) return std::nullopt;
  auto goals = phase_->goals(services_.cluster, action_.facet.subject, facts_);
  auto goal = std::find_if(goals.begin(), goals.end(),
                           [this](const Goal& g) { return g.facet == action_.facet; });
  if (goal == goals.end())
    return fmt::format("{} is no longer wanted with the facts of this run; plan again", action_.id);
  if (goal->disruption > action_.disruption)
    return fmt::format("{} would now be a {}, but the plan says {}; plan again", action_.id,
                       toString(goal->disruption), toString(action_.disruption));
  if (goal->want != action_.to) {
    report_.emit(EventKind::Note,
                 fmt::format("target is '{}' (not known when the plan was made: '{}')", goal->want,
                             action_.to));
    action_.to = goal->want;
  }
  return std::nullopt;
}

bool ActionRun::disturbs() const {
  return !action_.facet.subject.isCluster() && action_.disruption != Disruption::None &&
         !isDrain() && action_.facet.facet.str() != kPoolFacet;
}

/// The second look at what the plan promised, with the facts of this moment. The agent's own look
/// at the disk is the third.
Task<std::optional<std::string>> ActionRun::guard() {
  if (!disturbs()) co_return std::nullopt;
  if (auto why = co_await guardPool()) co_return why;
  co_return co_await guardWipe();
}

/// Asks the pool again: between the plan and this moment a person, or the node's own start, may
/// have put it back to work. A facet has one phase, and the pool's is the last in a site's order.
Task<std::optional<std::string>> ActionRun::guardPool() {
  const Subject subject = action_.facet.subject;
  const FacetName facet{std::string(kPoolFacet)}, hold{std::string(kPoolHoldFacet)};
  for (Phase* phase : services_.phases | std::views::reverse) {
    const auto goals = phase->goals(services_.cluster, subject, facts_);
    if (std::none_of(goals.begin(), goals.end(),
                     [&facet](const Goal& goal) { return goal.facet.facet == facet; }))
      continue;
    auto read = co_await askPool(phase);
    if (!read)
      co_return fmt::format("whether {} takes jobs cannot be read: {}", subject.str(),
                            read.error().str());
    for (auto& fact : *read)
      if (fact.subject == subject && (fact.facet == facet || fact.facet == hold) &&
          !fact.value.empty())
        facts_.put(std::move(fact));
    break;
  }
  if (const auto held = bindingHoldOf(facts_, subject)) co_return poolHoldText(subject, *held);
  if (mayTakeJobs(facts_.value(subject, facet)))
    co_return fmt::format("{} may take jobs and was not drained; plan again", subject.str());
  co_return std::nullopt;
}

/// While the pool does not answer nothing is disturbed, and it is asked again for as long as the
/// action may take. That time is not the action's own: it begins when the pool has answered.
Async<std::vector<Fact>> ActionRun::askPool(Phase* phase) {
  const Subject subject = action_.facet.subject;
  for (bool waited = false;; waited = true) {
    auto observe = catchExceptions(fmt::format("{} observing {}", phase->name(), subject.str()),
                                   phase->observe(subject));
    auto read = co_await withDeadline(services_.clock, limitHere(services_.clock, kVerifyDeadline),
                                      "re-reading the pool", std::move(observe));
    if (read && waited) started_ = services_.clock.steady();
    if (read || !read.error().canRetry() || timeLeft() <= kAskPoolAgain) co_return read;
    report_.waiting(read.error().str());
    co_await services_.clock.sleep(kAskPoolAgain);
  }
}

Task<std::optional<std::string>> ActionRun::guardWipe() {
  const auto& subject = action_.facet.subject;
  if (action_.disruption != Disruption::Wipe) co_return std::nullopt;
  auto allowed = co_await services_.journal->write<std::vector<NodeName>>(
      [](Store& store) { return store.wipeGrants(); });
  if (!allowed) co_return "whether it may be wiped cannot be read: " + allowed.error().str();
  intent_.uses_wipe = std::find(allowed->begin(), allowed->end(), subject.node()) != allowed->end();
  if (intent_.uses_wipe) co_return std::nullopt;
  const auto installed = facts_.value(subject, FacetName(std::string(kInstalledFacet)));
  if (!installed)
    co_return fmt::format(
        "{} would be wiped, but it is not known whether its disk holds a system; {}", subject.str(),
        wipeAdvice(subject));
  if (*installed != kNothingInstalled)
    co_return fmt::format("{} would be wiped, but its disk holds '{}'; {}", subject.str(),
                          *installed, wipeAdvice(subject));
  co_return std::nullopt;
}

// ---- the journal
// -------------------------------------------------------------------------------------------------------

/// An intent that an earlier run left open: look first. Answers the end when nothing is left to do.
Task<std::optional<ActionResult>> ActionRun::resumeIntent() {
  const Intent anew = std::exchange(intent_, *open_);
  journaled_ = true;
  report_.emit(EventKind::ActionStarted,
               "resumed after muster stopped: " +
                   print({action_.cause, action_.about.str(), action_.reason}));
  auto seen = co_await observeFacet();
  const bool goes_on = phase_->resumesAfterMet() && !intent_.operation.empty();
  if (seen && seen->met && !goes_on) {
    auto ended = co_await done("; it was finished before muster stopped");
    co_return ended;
  }
  if (intent_.action.to == action_.to || intent_.inventory_digest == services_.cluster.digest)
    co_return std::nullopt;
  if (const auto left = orphanedOperationOf(intent_, services_.clock.now())) {
    if (const auto kept = co_await services_.journal->write<void>(
            [fact = *left](Store& store) { return store.putFacts(std::vector<Fact>(1, fact)); });
        !kept)
      co_return ActionResult{ActionStatus::Failed, kept.error().str()};
    facts_.put(*left);
  }
  const auto trouble = co_await close(
      IntentState::Abandoned,
      fmt::format("the inventory now wants '{}' instead of '{}'", action_.to, intent_.action.to));
  if (!trouble.empty()) co_return ActionResult{ActionStatus::Failed, trouble};
  intent_ = anew;
  co_return std::nullopt;
}

Async<void> ActionRun::begin() {
  intent_.id = newIntentId(action_.id);
  intent_.inventory_digest = services_.cluster.digest;
  intent_.action = action_;
  intent_.opened_at = services_.clock.now();
  CO_TRY_OK(co_await services_.journal->write<void>(
      [intent = intent_](Store& store) { return store.openIntent(intent); }));
  journaled_ = true;
  report_.emit(EventKind::ActionStarted,
               fmt::format("'{}' → '{}': {}", action_.from, action_.to,
                           print({action_.cause, action_.about.str(), action_.reason})));
  co_return Result<void>();
}

/// Answers what went wrong, as words; a journal that cannot be closed leaves the intent open for
/// the next run.
Task<std::string> ActionRun::close(IntentState state, std::string outcome, bool findings_too) {
  const bool journaled = std::exchange(journaled_, false);
  const auto work = [id = intent_.id, facet = action_.facet, state, outcome,
                     at = services_.clock.now(), journaled,
                     findings_too](Store& store) -> Result<void> {
    if (findings_too)
      if (auto cleared = store.clearFindings(facet); !cleared)
        return fail(std::move(cleared).error().within("findings could not be cleared"));
    if (!journaled) return {};
    if (auto closed = store.closeIntent(id, state, outcome, at); !closed)
      return fail(std::move(closed).error().within("the journal could not be closed"));
    return {};
  };
  auto closed = co_await services_.journal->write<void>(work);
  co_return closed ? std::string() : closed.error().str();
}

// ---- acting
// ------------------------------------------------------------------------------------------------------------

milliseconds ActionRun::timeLeft() const {
  return std::chrono::ceil<milliseconds>(limitHere(services_.clock, action_.deadline) -
                                         (services_.clock.steady() - started_));
}

void ActionRun::excludeWaiting(std::chrono::steady_clock::time_point since) {
  const auto passed = std::min<std::chrono::steady_clock::duration>(
      services_.clock.steady() - since, kLongestAway - away_);
  away_ += passed;
  started_ += passed;
}

Error ActionRun::overdue() const {
  const std::string last = report_.lastEvidence().empty()
                               ? "there was no evidence"
                               : fmt::format("the last evidence was '{}'", report_.lastEvidence());
  return Error(ErrorCode::Timeout,
               fmt::format("{} did not become '{}' within {}; {}", action_.facet.str(), action_.to,
                           limitText(services_.clock, action_.deadline), last));
}

Async<Outcome> ActionRun::actOnce() {
  CO_TRY_OK(claims_.ensureHeld(action_.facet.subject));
  // A phase that ends by itself before the deadline must know which holds.
  Action asked = action_;
  asked.deadline =
      std::chrono::floor<std::chrono::seconds>(limitHere(services_.clock, action_.deadline));
  auto work = catchExceptions(fmt::format("{} acting on {}", action_.phase, action_.id),
                              phase_->act(std::move(asked), *this));
  co_return co_await withDeadline(services_.clock, timeLeft(), action_.id, std::move(work));
}

/// Calls act until it is Done, or Blocked (then stopped_by_ says why). Errors that can be retried
/// are, kMaxActionRetries times in a row; all of it within the deadline.
Async<void> ActionRun::drive() {
  int retries = 0;
  while (timeLeft() > milliseconds(0)) {
    const auto began = services_.clock.steady();
    auto outcome = co_await actOnce();
    milliseconds pause;
    bool is_away = false;
    if (!outcome) {
      if (timeLeft() <= milliseconds(0)) break;
      if (!outcome.error().canRetry() || retries >= kMaxActionRetries)
        co_return fail(std::move(outcome).error());
      pause = kFirstRetryDelay * (1 << retries++);
      report_.noteEvidence(outcome.error().str());
      report_.emit(EventKind::ActionWaiting,
                   fmt::format("{}; tries again in {} s ({} of {})", report_.lastEvidence(),
                               pause.count() / 1000, retries, kMaxActionRetries));
    } else if (std::holds_alternative<Done>(*outcome)) {
      co_return Result<void>();
    } else if (const auto* stop = std::get_if<Blocked>(&*outcome)) {
      blocked_by_ = stop->why;
      co_return Result<void>();
    } else {
      retries = 0;
      const auto& again = std::get<Again>(*outcome);
      report_.waiting(again.waiting_for);
      pause = std::max(again.after, kShortestPoll);
      is_away = again.is_away;
    }
    co_await services_.clock.sleep(std::min(pause, timeLeft()));
    if (is_away) excludeWaiting(began);
  }
  co_return fail(overdue());
}

Async<std::vector<Fact>> ActionRun::verifyOnce() {
  auto work = catchExceptions(fmt::format("{} verifying {}", action_.phase, action_.id),
                              phase_->verify(action_));
  co_return co_await withDeadline(services_.clock, limitHere(services_.clock, kVerifyDeadline),
                                  "re-reading " + action_.facet.str(), std::move(work));
}

/// Re-reads the facet, keeps what was seen and compares it with what is wanted now.
Async<ActionRun::Observation> ActionRun::observeFacet() {
  auto read = co_await verifyOnce();
  if (!read) co_return fail(std::move(read).error());
  Observation seen;
  std::vector<Fact> kept;
  for (auto& fact : *read) {
    if (fact.value.empty()) continue;
    if (fact.observed_at == WallTime{}) fact.observed_at = services_.clock.now();
    if (fact.subject == action_.facet.subject && fact.facet == action_.facet.facet)
      seen.value = fact.value;
    kept.push_back(fact);
  }
  const auto written = co_await services_.journal->write<void>(
      [kept](Store& store) { return store.putFacts(kept); });
  write_failed_ = !written;
  CO_TRY_OK(written);
  for (auto& fact : kept) facts_.put(std::move(fact));
  seen.met = !seen.value.empty() && matches(wantNow(), seen.value);
  co_return seen;
}

/// After Done: only a fact that was read again and matches is success. A pool that does not answer
/// is asked again, as in drive().
Async<void> ActionRun::confirm() {
  for (int retries = 0;; ++retries) {
    const auto began = services_.clock.steady();
    auto seen = co_await observeFacet();
    if (!seen) {
      const bool is_pool = action_.facet.facet.str() == kPoolFacet;
      const bool goes_on = retries < kMaxActionRetries || (is_pool && timeLeft() > milliseconds(0));
      if (!seen.error().canRetry() || !goes_on)
        co_return fail(std::move(seen).error().within("verifying " + action_.id));
      if (is_pool) report_.waiting(seen.error().str());
      co_await services_.clock.sleep(kFirstRetryDelay *
                                     (1 << std::min(retries, kMaxActionRetries)));
      if (is_pool) excludeWaiting(began);
      continue;
    }
    if (seen->met) co_return Result<void>();
    const auto want = wantNow();
    if (!seen->value.empty())
      co_return fail(
          Error(ErrorCode::Conflict, fmt::format("{} was set to '{}', but is '{}' when read again",
                                                 action_.facet.str(), want, seen->value)));
    facts_.forget(action_.facet.subject, action_.facet.facet);
    CO_TRY_OK(co_await services_.journal->write<void>([facet = action_.facet](Store& store) {
      return store.forgetFacts(facet.subject, std::vector<FacetName>(1, facet.facet));
    }));
    co_return fail(
        Error(ErrorCode::NotFound,
              fmt::format(
                  "{} was set to '{}', but reading it again gave no value, which counts as failed",
                  action_.facet.str(), want)));
  }
}

// ---- what the phase says
// -----------------------------------------------------------------------------------------------

Async<void> ActionRun::recordOperation(std::string id) {
  if (id == intent_.operation) co_return Result<void>();
  auto write = services_.journal->write<void>(
      [intent = intent_.id, id](Store& store) { return store.recordOperation(intent, id); });
  const auto written = co_await std::move(write);
  write_failed_ = !written;
  CO_TRY_OK(written);
  intent_.operation = id;
  co_return Result<void>();
}

/// An intent that has begun to write owns what is on the disk: the guards were passed before its
/// first byte.
bool ActionRun::wipeAllowed() const {
  return action_.disruption == Disruption::Wipe &&
         (intent_.uses_wipe || !intent_.operation.empty());
}

// ---- how it ends
// --------------------------------------------------------------------------------------------------------

/// An effect is journaled before it happens: without an operation nothing was wiped, and what was
/// known still holds.
Task<void> ActionRun::restoreUnwiped() {
  if (intent_.operation.empty()) co_await wiped_facts_.restore();
}

Task<ActionResult> ActionRun::done(std::string how) {
  const auto value = facts_.value(action_.facet.subject, action_.facet.facet).value_or(action_.to);
  const auto words = fmt::format("{} is '{}' after {}{}", action_.facet.facet.str(), value,
                                 seconds(services_.clock.steady() - started_), how);
  auto closing = close(IntentState::Done, words,
                       !isDrain());  // the last drain says nothing about why a join failed
  if (auto trouble = co_await std::move(closing); !trouble.empty())
    co_return ActionResult{ActionStatus::Failed, trouble};
  report_.emit(EventKind::ActionDone, words);
  co_return ActionResult{ActionStatus::Done, words};
}

Task<ActionResult> ActionRun::failed(Error error) {
  const auto text = error.str();
  const auto& subject = action_.facet.subject.str();
  const bool verdict = error.code() == ErrorCode::Timeout || error.code() == ErrorCode::Conflict ||
                       error.code() == ErrorCode::NotFound;
  if (!report_.hasOwnFinding() || verdict)
    report_.raise(
        Severity::Error, text,
        error.canRetry()
            ? fmt::format(
                  "see what it waited for with `muster events {}`, then `muster apply` tries again",
                  subject)
            : fmt::format("remove the cause, then `muster plan` and `muster apply` again; `muster "
                          "why {}` shows the evidence",
                          subject));
  co_await restoreUnwiped();
  const auto trouble = co_await close(IntentState::Failed, text);
  report_.emit(EventKind::ActionFailed, text);
  co_return ActionResult{ActionStatus::Failed, trouble.empty() ? text : text + "; " + trouble};
}

/// Nothing is concluded from what could not be stored: a write to a disk that had ended well would
/// be done again. The intent stays open, and the next run looks first.
Task<ActionResult> ActionRun::keepOpen(Error error) {
  const auto text = error.str() + "; how it has ended is not known: the next run looks first";
  report_.raise(Severity::Error, text, "let the store be written again, then `muster apply`");
  co_await restoreUnwiped();
  report_.emit(EventKind::ActionFailed, text);
  co_return ActionResult{ActionStatus::Failed, text};
}

Task<ActionResult> ActionRun::blocked(std::string why) {
  if (!report_.hasOwnFinding())
    report_.raise(Severity::Warning, why, "remove what blocks it, then `muster apply` again");
  co_await restoreUnwiped();
  const auto trouble = co_await close(IntentState::Blocked, why);
  report_.emit(EventKind::ActionBlocked, why);
  co_return ActionResult{ActionStatus::Blocked, trouble.empty() ? why : why + "; " + trouble};
}

}  // namespace muster::lifecycle
