// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/runs/run.h"

#include "lifecycle/runs/run_words.h"

#include <algorithm>
#include <array>

namespace muster::lifecycle {
namespace {

struct Change {
  RunState from, to;
  RunMover mover;
};

constexpr auto kPerson = RunMover::Person;
constexpr auto kExecutor = RunMover::Executor;

/// A person never changes what a process works on: they order it (RunOrder), and it obeys.
constexpr std::array kChanges{
    Change{RunState::Queued, RunState::Planning, kExecutor},
    Change{RunState::Queued, RunState::Paused, kPerson},
    Change{RunState::Queued, RunState::Cancelled, kPerson},
    Change{RunState::Planning, RunState::Queued,
           kExecutor},  // its process was ended: it is planned anew
    Change{RunState::Planning, RunState::Planned, kExecutor},
    Change{RunState::Planning, RunState::Done, kExecutor},
    Change{RunState::Planning, RunState::Failed, kExecutor},
    Change{RunState::Planning, RunState::Paused, kExecutor},
    Change{RunState::Planning, RunState::Cancelled, kExecutor},
    Change{RunState::Planned, RunState::NeedsApproval, kExecutor},
    Change{RunState::Planned, RunState::Approved, kExecutor},
    Change{RunState::Planned, RunState::Failed, kExecutor},
    Change{RunState::Planned, RunState::Paused, kPerson},
    Change{RunState::Planned, RunState::Cancelled, kPerson},
    Change{RunState::NeedsApproval, RunState::Approved, kPerson},
    Change{RunState::NeedsApproval, RunState::Outdated, kExecutor},
    Change{RunState::NeedsApproval, RunState::Paused, kPerson},
    Change{RunState::NeedsApproval, RunState::Cancelled, kPerson},
    Change{RunState::Approved, RunState::Running, kExecutor},
    Change{RunState::Approved, RunState::Outdated, kExecutor},
    Change{RunState::Approved, RunState::Failed, kExecutor},
    Change{RunState::Approved, RunState::Waiting, kExecutor},
    Change{RunState::Approved, RunState::NeedsApproval,
           kExecutor},  // whose yes it was may say it no more
    Change{RunState::Approved, RunState::Paused, kPerson},
    Change{RunState::Approved, RunState::Cancelled, kPerson},
    Change{RunState::Waiting, RunState::Approved, kExecutor},  // its window is open
    Change{RunState::Waiting, RunState::Approved, kPerson},    // against the window
    Change{RunState::Waiting, RunState::Outdated, kExecutor},
    Change{RunState::Waiting, RunState::Paused, kPerson},
    Change{RunState::Waiting, RunState::Cancelled, kPerson},
    Change{RunState::Running, RunState::Waiting, kExecutor},  // a later round is outside the window
    Change{RunState::Running, RunState::Done, kExecutor},
    Change{RunState::Running, RunState::WorkLeft, kExecutor},
    Change{RunState::Running, RunState::Failed, kExecutor},
    Change{RunState::Running, RunState::Paused, kExecutor},
    Change{RunState::Running, RunState::Cancelled, kExecutor},
    Change{RunState::Running, RunState::Outdated, kExecutor},
    Change{RunState::Running, RunState::NeedsApproval,
           kExecutor},  // a later round would disturb more
    Change{RunState::Paused, RunState::Queued, kPerson},
    Change{RunState::Paused, RunState::Running, kExecutor},
    Change{RunState::Paused, RunState::Approved, kPerson},
    Change{RunState::Paused, RunState::Cancelled, kPerson},
};

}  // namespace

std::string_view toString(RunKind kind) { return wire::wordOf(kRunKinds, kind); }
std::optional<RunKind> parseRunKind(std::string_view text) {
  return wire::valueOf(kRunKinds, text);
}
std::string_view toString(RunState state) { return wire::wordOf(kRunStates, state); }
std::optional<RunState> parseRunState(std::string_view text) {
  return wire::valueOf(kRunStates, text);
}
std::string_view toString(RunReason reason) { return wire::wordOf(kRunReasons, reason); }
std::optional<RunReason> parseRunReason(std::string_view text) {
  return wire::valueOf(kRunReasons, text);
}
std::string_view toString(RunOrder order) { return wire::wordOf(kRunOrders, order); }
std::string_view toString(AfterRestart policy) { return wire::wordOf(kAfterRestart, policy); }
std::optional<AfterRestart> parseAfterRestart(std::string_view text) {
  return wire::valueOf(kAfterRestart, text);
}

std::string_view toString(inventory::OnFailure policy) { return wire::wordOf(kOnFailure, policy); }
std::optional<inventory::OnFailure> parseOnFailure(std::string_view text) {
  return wire::valueOf(kOnFailure, text);
}
std::string_view toString(inventory::OnInconclusive policy) {
  return wire::wordOf(kOnInconclusive, policy);
}
std::optional<inventory::OnInconclusive> parseOnInconclusive(std::string_view text) {
  return wire::valueOf(kOnInconclusive, text);
}

bool isEnd(RunState state) { return state >= RunState::Done; }

bool mayChange(RunState from, RunState to, RunMover mover) {
  return std::any_of(kChanges.begin(), kChanges.end(), [&](const Change& change) {
    return change.from == from && change.to == to && change.mover == mover;
  });
}

Result<Run> changed(Run run, RunState to, RunReason reason, RunMover mover, std::string by,
                    WallTime at) {
  if (!mayChange(run.state, to, mover))
    return fail(ErrorCode::Conflict, fmt::format("run {} is {}: it cannot become {}", run.id,
                                                 toString(run.state), toString(to)));
  run.state = to;
  run.reason = reason;
  const bool is_over = isEnd(to) || to == RunState::Paused || to == RunState::Queued;
  if (is_over) run.order = RunOrder::None;
  if (is_over) run.ordered_by.clear();
  if (to != RunState::Waiting) run.waits_until = {};
  run.begun = run.begun || to == RunState::Running;
  if (run.stamps.size() >= kMaxRunStamps) run.stamps.erase(run.stamps.begin());
  run.stamps.push_back({to, reason, at, std::move(by)});
  return run;
}

const std::string& personOf(const RunActor& actor) {
  return actor.person.empty() ? actor.principal : actor.person;
}

namespace {

/// User names of a site differ by more than case: whoever types "Anna" means anna.
std::string comparedName(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return name;
}

}  // namespace

bool isSamePerson(const RunActor& a, const RunActor& b) {
  return comparedName(personOf(a)) == comparedName(personOf(b)) ||
         (!a.account.empty() && a.account == b.account);
}

bool mayBeOnePerson(const RunActor& a, const RunActor& b) {
  const auto has_seen = [](const RunActor& who, const RunActor& token) {
    return std::ranges::any_of(token.issuers, [&who](const std::string& issuer) {
      return comparedName(issuer) == comparedName(personOf(who)) ||
             (!who.account.empty() && issuer == who.account);
    });
  };
  return a.principal == b.principal || isSamePerson(a, b) || has_seen(a, b) || has_seen(b, a);
}

std::size_t approvalsOf(const Run& run) {
  std::vector<const RunActor*> others;
  for (const auto& approval : run.approvals)
    if (!approval.confirmation && approval.void_because.empty() &&
        approval.plan_hash == run.plan_hash && !mayBeOnePerson(approval.by, run.asked_by) &&
        std::ranges::none_of(others, [&approval](const RunActor* other) {
          return isSamePerson(*other, approval.by);
        }))
      others.push_back(&approval.by);
  return others.size();
}

bool mayIgnoreWindows(const Run& run) {
  return std::any_of(run.overrides.begin(), run.overrides.end(), [](const RunOverride& each) {
    return each.against == RunReason::OutsideWindow && each.void_because.empty();
  });
}

bool hasLoudOverride(const Run& run) {
  return std::any_of(run.overrides.begin(), run.overrides.end(),
                     [](const RunOverride& each) { return each.acknowledged_by.empty(); });
}

bool isAgreed(const Run& run) {
  if (run.plan_hash.empty()) return false;
  const bool is_overridden =
      std::any_of(run.overrides.begin(), run.overrides.end(), [&run](const RunOverride& each) {
        return each.against != RunReason::OutsideWindow && each.void_because.empty() &&
               each.plan_hash == run.plan_hash;
      });
  if (is_overridden) return true;
  const auto approvals = approvalsOf(run);
  const bool confirmed =
      !run.apply.confirm || approvals > 0 ||
      std::any_of(run.approvals.begin(), run.approvals.end(), [&run](const RunApproval& approval) {
        return approval.confirmation && approval.void_because.empty() &&
               approval.plan_hash == run.plan_hash;
      });
  return confirmed && approvals >= run.approvals_needed;
}

}  // namespace muster::lifecycle
