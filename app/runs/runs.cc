// SPDX-License-Identifier: Apache-2.0
#include "app/runs/runs.h"

#include "app/runs/run_change.h"
#include "app/runs/run_kind.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "app/site/revoked_tokens.h"
#include "base/io/crypto.h"
#include "base/printable.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace muster::app {
namespace {

using namespace lifecycle;

constexpr std::size_t kIdBytes = 6;  ///< hexadecimal digits are twice as many
constexpr std::size_t kMaxLoudRuns = 100;
constexpr std::size_t kMaxIdBytes = 64;  ///< of what somebody types

std::string newId() { return "r-" + io::sha256Hex(io::randomToken(24)).substr(0, 2 * kIdBytes); }

std::string who(const RunActor& actor) {
  return actor.address.empty() ? actor.principal : actor.principal + "@" + actor.address;
}

bool isWorkedOn(const Run& run) {
  return run.state == RunState::Planning || run.state == RunState::Running;
}

Error over(const Run& run, std::string_view verb) {
  return Error(ErrorCode::Conflict, fmt::format("run {} is {} already: there is nothing to {}",
                                                run.id, toString(run.state), verb));
}

std::string adviceOf(RunRefusal refusal, const std::string& id) {
  switch (refusal) {
    case RunRefusal::OwnRun:
      return fmt::format("somebody else has to: `muster run approve {}`", id);
    case RunRefusal::OwnOverride:
      return fmt::format("somebody else has to: `muster run acknowledge {}`", id);
    case RunRefusal::OthersRun:
      return fmt::format("approve it instead: `muster run approve {}`", id);
    case RunRefusal::OtherPlan:
      return fmt::format("look at it again: `muster run show {}`", id);
  }
  return {};
}

/// The text ends with what to do.
Error refusal(ErrorCode code, RunRefusal why, const std::string& id, const std::string& text) {
  return Error(code, text + "; " + adviceOf(why, id)).because(why);
}

Error anotherPlan(const Run& run) {
  if (run.plan_hash.empty())
    return refusal(ErrorCode::Conflict, RunRefusal::OtherPlan, run.id,
                   fmt::format("run {} has no plan", run.id));
  return refusal(ErrorCode::Conflict, RunRefusal::OtherPlan, run.id,
                 fmt::format("the plan of run {} is another one by now ({})", run.id,
                             run.plan_hash.substr(0, 12)));
}

/// A beginning that two plans share by chance once in billions of times.
constexpr std::size_t kLeastHashDigits = 8;

/// Errors: Conflict (it is another one by now, or there is none), InvalidInput (no hash)
Result<void> requirePlan(const Run& run, const std::string& named) {
  const bool is_it = named == run.plan_hash ||
                     (named.size() >= kLeastHashDigits && run.plan_hash.starts_with(named));
  if (is_it && !run.plan_hash.empty()) return {};
  const bool is_hash =
      named.size() >= kLeastHashDigits && std::ranges::all_of(named, [](unsigned char c) {
        return std::isdigit(c) || (c >= 'a' && c <= 'f');
      });
  if (is_hash || run.plan_hash.empty()) return fail(anotherPlan(run));
  return fail(refusal(ErrorCode::InvalidInput, RunRefusal::OtherPlan, run.id,
                      fmt::format("\"{}\" is no hash of a plan: a plan is named by its hash, or by "
                                  "the first {} digits of it (0-9, a-f) or more",
                                  printable(named.substr(0, kMaxIdBytes)), kLeastHashDigits)));
}

/// A change that a person asks for: at once, or by an order to whoever works on it.
Result<Run> ordered(Run run, RunOrder order, const RunActor& actor, WallTime now,
                    std::string& note) {
  const bool cancels = order == RunOrder::Cancel;
  const auto verb = toString(order);
  if (isEnd(run.state)) return fail(over(run, verb));
  // The waves of a rollout that has begun are ended by whoever serves the site, before its run is.
  const bool has_work = cancels && run.begun && rulesOf(run.kind).hasWorkToEnd();
  if (!isWorkedOn(run) && !has_work) {
    if (!cancels && run.state == RunState::Paused) return run;
    note = fmt::format("run {}: {} by {}", run.id, cancels ? "cancelled" : "paused", who(actor));
    return changed(std::move(run), cancels ? RunState::Cancelled : RunState::Paused,
                   cancels ? RunReason::CancelledByPerson : RunReason::PausedByPerson,
                   RunMover::Person, actor.principal, now);
  }
  if (run.order == order || run.order == RunOrder::Cancel) return run;
  run.order = order;
  run.ordered_by = actor.principal;
  note = fmt::format("run {}: {} ordered by {}", run.id, verb, who(actor));
  return run;
}

Result<Run> saidYes(Run run, const std::string& plan, const RunActor& actor, bool confirmation,
                    WallTime now, std::string& note) {
  if (run.state != RunState::NeedsApproval)
    return fail(ErrorCode::Conflict,
                fmt::format("run {} is {}: it waits for no approval", run.id, toString(run.state)));
  TRY_OK(requirePlan(run, plan));
  RunApproval yes{actor, now, run.plan_hash, confirmation};
  const bool known =
      std::any_of(run.approvals.begin(), run.approvals.end(), [&yes](const RunApproval& earlier) {
        return isSamePerson(earlier.by, yes.by) && earlier.plan_hash == yes.plan_hash &&
               earlier.confirmation == yes.confirmation && earlier.void_because.empty();
      });
  if (known) return run;
  run.approvals.push_back(std::move(yes));
  note = fmt::format("run {}: plan {} {} by {} ({})", run.id, run.plan_hash.substr(0, 12),
                     confirmation ? "confirmed" : "approved", who(actor), actor.way);
  if (!isAgreed(run)) {
    const bool is_told_why = run.reason == RunReason::ApprovalVoid;
    if (approvalsOf(run) < run.approvals_needed && !is_told_why)
      run.reason = RunReason::AwaitsApproval;
    return run;
  }
  return changed(std::move(run), RunState::Approved, RunReason::None, RunMover::Person,
                 actor.principal, now);
}

/// But for what nobody has asked for.
bool isSameRequest(const Run& stored, const Run& asked) {
  if (stored.kind != asked.kind) return false;
  const auto& rules = rulesOf(asked.kind);
  const auto a = rules.asAsked(stored), b = rules.asAsked(asked);
  return a.apply == b.apply && a.erase == b.erase && a.rollout == b.rollout &&
         a.validate == b.validate && a.isolate == b.isolate &&
         a.firmware_retry == b.firmware_retry && a.image_build == b.image_build &&
         a.after_restart == b.after_restart;
}

/// Whether it is something that happens to what a plan works on.
bool isWork(EventKind kind) {
  switch (kind) {
    case EventKind::ActionStarted:
    case EventKind::ActionProgress:
    case EventKind::ActionWaiting:
    case EventKind::ActionDone:
    case EventKind::ActionFailed:
    case EventKind::ActionBlocked:
    case EventKind::FindingRaised:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::unique_ptr<RunStore>> openRunStore(const Options& options) {
  TRY_OK(requireUsed(options));
  return openRuns(options.storeUrl());
}

std::string whatToDo(const Error& error, const std::string& id) {
  for (const auto& reason : error.reasons())
    if (const auto refusal = reason.as<RunRefusal>()) return adviceOf(*refusal, id);
  return {};
}

RunActor localActor() { return {userName(), "local", hostName()}; }

Result<Run> submitRun(RunStore& runs, const RunRequest& request, const RunActor& actor,
                      WallTime now) {
  if (request.idempotency_key.size() > kMaxIdempotencyKeyBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("an idempotency key has at most {} bytes", kMaxIdempotencyKeyBytes));
  if (actor.principal.empty())
    return fail(ErrorCode::Denied, "nobody asks for this run: a run has an author");
  Run run;
  run.id = newId();
  run.kind = request.kind;
  run.apply = request.apply;
  run.erase = request.erase;
  run.rollout = request.rollout;
  run.validate = request.validate;
  run.isolate = request.isolate;
  run.firmware_retry = request.firmware_retry;
  run.image_build = request.image_build;
  if (!run.apply.nodes.empty()) {
    TRY(names, inventory::expandHostlist(run.apply.nodes));
    run.apply.nodes = inventory::foldHostlist(std::move(names));
  }
  const auto& rules = rulesOf(run.kind);
  TRY_OK(rules.accept(run));
  run.asked_by = actor;
  run.asked_at = now;
  run.after_restart = request.after_restart;
  run.idempotency_key = request.idempotency_key;
  run.stamps.push_back({RunState::Queued, RunReason::None, now, actor.principal});
  const auto note = fmt::format("run {}: {} {} asked for by {} ({})", run.id, toString(run.kind),
                                rules.subject(run), who(actor), actor.way);
  TRY(stored, runs.add(run, note));
  if (!isSameRequest(stored, run))
    return fail(ErrorCode::Conflict,
                fmt::format("the idempotency key was used for another request, run {}", stored.id));
  return std::move(stored);
}

Result<std::vector<Run>> listRuns(RunStore& runs, const RunFilter& filter) {
  return runs.list(filter);
}

Result<Run> readRun(RunStore& runs, const std::string& id) {
  if (id.size() <= kMaxIdBytes) {
    TRY(run, runs.read(id));
    if (run) return std::move(*run);
  }
  return fail(ErrorCode::NotFound, fmt::format("there is no run {}; `muster run list` shows them",
                                               id.substr(0, kMaxIdBytes)));
}

Result<void> markVoidWords(Store& store, std::vector<Run>& runs) {
  const auto is_asked_of = [](const Run& run) {
    return !run.begun && !isEnd(run.state) && !(run.approvals.empty() && run.overrides.empty());
  };
  if (std::ranges::none_of(runs, is_asked_of)) return {};
  TRY(tokens, RevokedTokens::read(store));
  for (auto& run : runs)
    if (is_asked_of(run)) tokens.strikeOut(run);
  return {};
}

Result<Run> withVoidWords(Store& store, Run run) {
  std::vector<Run> one{std::move(run)};
  TRY_OK(markVoidWords(store, one));
  return std::move(one.front());
}

Result<RunEvents> followRun(RunStore& runs, Store& store, const std::string& id, std::int64_t after,
                            std::size_t limit) {
  RunEvents out;
  TRY(run, readRun(runs, id));
  out.run = std::move(run);
  out.next = std::max(after, out.run.first_event - 1);
  const bool is_over = isEnd(out.run.state);
  const auto own = std::string(kRunEventPrefix) + id;
  const bool has_notes = rulesOf(out.run.kind).isToldByNotes();
  TRY(read, store.events(out.next, limit, nullptr));
  // A large run has many nodes, and is asked after several times a second while nothing happens.
  std::set<Subject> subjects{Subject::cluster()};
  const bool has_work = std::any_of(read.begin(), read.end(), [&](const Event& event) {
    return isWork(event.kind) || (has_notes && event.kind == EventKind::Note);
  });
  if (has_work && !out.run.subjects.empty()) {
    TRY(names, inventory::expandHostlist(out.run.subjects));
    for (const auto& name : names) subjects.insert(Subject(NodeName(name)));
  }
  for (auto& event : read) {
    if (is_over && event.sequence > out.run.last_event) break;
    out.next = event.sequence;
    const bool is_told =
        has_notes && event.kind == EventKind::Note && subjects.contains(event.subject);
    if (event.action_id == own || is_told ||
        (isWork(event.kind) && subjects.contains(event.subject)))
      out.events.push_back(std::move(event));
  }
  out.ended = is_over && (out.next >= out.run.last_event || read.size() < limit);
  return out;
}

Result<Run> cancelRun(RunStore& runs, const std::string& id, const RunActor& actor, WallTime now) {
  return changeRun(runs, id, [&](Run run, std::string& note) {
    return ordered(std::move(run), RunOrder::Cancel, actor, now, note);
  });
}

Result<Run> pauseRun(RunStore& runs, const std::string& id, const RunActor& actor, WallTime now) {
  return changeRun(runs, id, [&](Run run, std::string& note) {
    return ordered(std::move(run), RunOrder::Pause, actor, now, note);
  });
}

Result<Run> resumeRun(RunStore& runs, const std::string& id, const RunActor& actor, WallTime now) {
  return changeRun(runs, id, [&](Run run, std::string& note) -> Result<Run> {
    if (isEnd(run.state)) return fail(over(run, "resume"));
    if (run.state != RunState::Paused) {
      if (run.order != RunOrder::Pause) return run;
      run.order = RunOrder::None;  // it has not obeyed yet
      run.ordered_by.clear();
      note = fmt::format("run {}: goes on, by {}", run.id, who(actor));
      return run;
    }
    note = fmt::format("run {}: resumed by {}", run.id, who(actor));
    // What had begun goes on with what it was allowed; anything else is looked at anew.
    const auto next = run.begun && isAgreed(run) ? RunState::Approved : RunState::Queued;
    return changed(std::move(run), next, RunReason::None, RunMover::Person, actor.principal, now);
  });
}

Result<Run> confirmRun(RunStore& runs, const std::string& id, const std::string& plan_hash,
                       const RunActor& actor, WallTime now) {
  return changeRun(runs, id, [&](Run run, std::string& note) -> Result<Run> {
    if (actor.principal != run.asked_by.principal)
      return fail(refusal(ErrorCode::Denied, RunRefusal::OthersRun, run.id,
                          fmt::format("run {} was asked for by {}, who alone confirms it", run.id,
                                      run.asked_by.principal)));
    return saidYes(std::move(run), plan_hash, actor, true, now, note);
  });
}

Result<Run> overrideRun(RunStore& runs, const std::string& id, const std::string& plan_hash,
                        const std::string& reason, const RunActor& actor, WallTime now) {
  if (!isRunReason(reason))
    return fail(ErrorCode::InvalidInput,
                fmt::format("an override needs a reason, of at most {} bytes", kMaxRunReasonBytes));
  return changeRun(runs, id, [&](Run run, std::string& note) -> Result<Run> {
    if (run.state != RunState::NeedsApproval && run.state != RunState::Waiting)
      return fail(ErrorCode::Conflict,
                  fmt::format("run {} is {}: it waits for no approval and no window", run.id,
                              toString(run.state)));
    TRY_OK(requirePlan(run, plan_hash));
    // Of an order whose token was revoked it is asked whether somebody else stands for it.
    if (run.reason == RunReason::ApprovalVoid && mayBeOnePerson(actor, run.asked_by))
      return fail(refusal(ErrorCode::Denied, RunRefusal::OwnRun, run.id,
                          fmt::format("the token with which {} asked for run {} was revoked: "
                                      "somebody else overrides or approves it",
                                      run.asked_by.principal, run.id)));
    run.overrides.push_back({actor, now, run.plan_hash, run.reason, reason, "", {}});
    note =
        fmt::format("run {}: OVERRIDE by {} ({}): plan {} begins though it is {} ({}); reason: {}",
                    run.id, who(actor), actor.way, run.plan_hash.substr(0, 12), toString(run.state),
                    toString(run.reason), reason);
    return changed(std::move(run), RunState::Approved, RunReason::None, RunMover::Person,
                   actor.principal, now);
  });
}

Result<Run> acknowledgeRun(RunStore& runs, const std::string& id, const RunActor& actor,
                           WallTime now) {
  return changeRun(runs, id, [&](Run run, std::string& note) -> Result<Run> {
    if (!hasLoudOverride(run))
      return fail(ErrorCode::Conflict,
                  fmt::format("run {} has no override that is to be acknowledged", run.id));
    bool knows_more = false;
    for (auto& each : run.overrides)
      if (each.acknowledged_by.empty() && !mayBeOnePerson(actor, each.by)) {
        each.acknowledged_by = actor.principal;
        each.acknowledged_at = now;
        knows_more = true;
      }
    if (!knows_more)
      return fail(refusal(ErrorCode::Denied, RunRefusal::OwnOverride, run.id,
                          fmt::format("{} has overridden run {}, and nobody acknowledges their own "
                                      "override, with a token that is theirs or that they have "
                                      "made either",
                                      personOf(actor), run.id)));
    note = fmt::format("run {}: override acknowledged by {} ({})", run.id, who(actor), actor.way);
    return run;
  });
}

Result<std::vector<std::string>> loudOverrides(RunStore& runs) {
  TRY(found, runs.list({.loud_only = true, .limit = kMaxLoudRuns}));
  std::vector<std::string> out;
  for (const auto& run : found)
    for (const auto& each : run.overrides)
      if (each.acknowledged_by.empty())
        out.push_back(fmt::format(
            "run {}: {} let it begin against the inventory at {}: {}; `muster run acknowledge {}`",
            run.id, who(each.by), muster::toString(each.at), each.reason, run.id));
  return out;
}

Result<Run> approveRun(RunStore& runs, const std::string& id, const std::string& plan_hash,
                       const RunActor& actor, WallTime now) {
  return changeRun(runs, id, [&](Run run, std::string& note) -> Result<Run> {
    if (mayBeOnePerson(actor, run.asked_by))
      return fail(refusal(ErrorCode::Denied, RunRefusal::OwnRun, run.id,
                          fmt::format("{} has asked for run {}, and nobody approves what they "
                                      "asked for, with a token that is theirs or that they have "
                                      "made either",
                                      personOf(run.asked_by), run.id)));
    return saidYes(std::move(run), plan_hash, actor, false, now, note);
  });
}

}  // namespace muster::app
