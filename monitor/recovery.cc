// SPDX-License-Identifier: Apache-2.0
#include "monitor/recovery.h"

#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/monitor.h"
#include "lifecycle/model/facet_table.h"
#include "lifecycle/model/plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace muster::monitor {
namespace {

using namespace lifecycle;
using inventory::Rung;
using std::chrono::seconds;

constexpr std::string_view kResponsive = "responsive";
constexpr std::chrono::milliseconds kLookAgain{10'000};

bool isStep(const Intent& intent) {
  return intent.action.facet.facet.str().starts_with(kRecoveryPrefix);
}

bool isRecoverable(const Intent& intent) {
  if (intent.action.disruption == Disruption::Wipe || intent.action.id.ends_with(kDrainSuffix))
    return false;
  const auto* row = findFacetRow(intent.action.facet.facet);
  return row && row->recoverable;
}

/// What was tried since the action was done last: oldest first. The first is the failure that all
/// of it is about.
std::vector<const Intent*> streakOf(const std::vector<Intent>& journal, WallTime now) {
  std::vector<const Intent*> out;
  std::string id;
  for (const auto& intent : journal) {
    if (intent.closed_at + kTroubleCounts < now) break;
    if (intent.state == IntentState::Abandoned && intent.operation.empty())
      continue;  // muster was killed before it did anything
    if (!isStep(intent) && (!isRecoverable(intent) || (!id.empty() && intent.action.id != id)))
      continue;
    if (!isStep(intent)) {
      if (intent.state == IntentState::Done) break;
      id = intent.action.id;
    }
    out.push_back(&intent);
  }
  std::reverse(out.begin(), out.end());
  out.erase(out.begin(), std::find_if(out.begin(), out.end(),
                                      [](const Intent* intent) { return !isStep(*intent); }));
  return out;
}

/// A failure right behind a failure was a retry; the others stand in the journal as steps.
std::set<Rung> triedIn(const std::vector<const Intent*>& streak) {
  std::set<Rung> out;
  for (std::size_t i = 1; i < streak.size(); ++i)
    if (!isStep(*streak[i]) && !isStep(*streak[i - 1])) out.insert(Rung::Retry);
  for (const auto* intent : streak)
    if (const auto rung = rungOf(intent->action.facet)) out.insert(*rung);
  return out;
}

Action again(const Intent& failure, std::string_view after) {
  Action action = failure.action;
  action.needs.clear();
  action.blocked.clear();
  if (action.cause != ActionCause::Recovery)
    action.reason = fmt::format("again after {}: {}", after, action.reason);
  action.cause = ActionCause::Recovery;
  action.about = action.facet.facet;
  return action;
}

Action stepAction(const Intent& failure, Rung rung) {
  Action action;
  action.facet = {failure.action.facet.subject,
                  FacetName(std::string(kRecoveryPrefix) + std::string(toString(rung)))};
  action.id = action.facet.str();
  action.phase = "recovery";
  action.to = std::string(kResponsive);
  action.reason =
      fmt::format("{} has failed: {}", failure.action.facet.facet.str(), failure.outcome);
  action.cause = ActionCause::Recovery;
  action.about = failure.action.facet.facet;
  action.disruption = rung == Rung::NewSession ? Disruption::None : Disruption::Reset;
  const auto* row = findFacetRow(action.facet.facet);
  action.expected = row->expected;
  action.deadline = row->bound;
  return action;
}

/// An operation that cuts standby power, and when: whoever comes after a dead process knows when to
/// give it back.
const std::string kCut = "ac-cycle ";

class BmcSteps final : public RecoverySteps {
 public:
  BmcSteps(bmc::BmcFleet& bmcs, Clock& clock) : bmcs_(bmcs), clock_(clock) {}

  std::string_view name() const override { return "recovery"; }
  bool isOnDemand() const override { return true; }
  void ask(const Subject& subject, Rung rung) override { asked_[subject] = rung; }

  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet&) const override {
    const auto asked = asked_.find(subject);
    if (asked == asked_.end()) return {};
    Goal goal;
    goal.facet = {subject,
                  FacetName(std::string(kRecoveryPrefix) + std::string(toString(asked->second)))};
    goal.want = std::string(kResponsive);
    goal.disruption = asked->second == Rung::NewSession ? Disruption::None : Disruption::Reset;
    const auto* row = findFacetRow(goal.facet.facet);
    goal.expected = row->expected;
    goal.deadline = row->bound;
    goal.why = "a step of recovery";
    return {goal};
  }
  Async<std::vector<Fact>> observe(Subject) override { co_return std::vector<Fact>(); }

  /// Never twice for one intent: after a crash what was begun is only brought to its end.
  Async<Outcome> act(Action action, ActContext& context) override {
    auto& bmc = bmcs_.at(action.facet.subject.node());
    if (!context.operation().empty()) {
      co_return co_await bringToEnd(bmc, needsPower(action), cutAt(context.operation()));
    }
    const auto asked = asked_.find(action.facet.subject);
    if (asked == asked_.end()) co_return Blocked{"this step is no longer requested"};
    if (asked->second != Rung::NewSession) {
      auto work = co_await workOf(bmc);
      // A BMC that answers nothing is what its reset is for, but not when its trouble began with
      // firmware.
      const bool may_be_blind = asked->second == Rung::BmcReset && !isAboutFirmware(action);
      if (!work && !(may_be_blind && work.error().canRetry()))
        co_return fail(std::move(work).error().within("whether an image is being written"));
      if (work && !work->empty())
        co_return Blocked{fmt::format("{} is under way on {}; power is not changed meanwhile",
                                      *work, bmc.address())};
    }
    CO_TRY_OK(co_await context.recordOperation(asked->second == Rung::AcCycle
                                                   ? kCut + muster::toString(clock_.now())
                                                   : std::string(toString(asked->second))));
    auto taken = co_await take(bmc, asked->second);
    if (!taken)
      co_return fail(std::move(taken).error().retryable(
          false));  // the next step is a stronger one, not this one again
    co_return Done{};
  }

  Async<std::vector<Fact>> verify(Action action) override {
    auto system = co_await bmcs_.at(action.facet.subject.node()).system();
    std::string value = system ? std::string(kResponsive) : "silent: " + system.error().str();
    if (system && needsPower(action) && system->power != bmc::PowerState::On)
      value = "the machine is not on";
    std::vector<Fact> out;
    out.push_back(
        {action.facet.subject, action.facet.facet, std::move(value), clock_.now(), "BMC", ""});
    co_return out;
  }

 private:
  static bool isAboutFirmware(const Action& action) {
    return stageOf(action.about) == Stage::Firmware;
  }

  /// What a reset or a cut would break, in words; "": nothing. Errors: that cannot be seen. A BMC
  /// that knows of no such thing has none.
  static Async<std::string> workOf(bmc::Bmc& bmc) {
    auto tasks = co_await bmc.tasks();
    if (!tasks && tasks.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(tasks).error());
    if (tasks && !tasks->running.empty()) co_return "the task " + tasks->running.front();
    auto items = co_await bmc.firmware();
    if (!items && items.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(items).error());
    for (const auto& item : items.value_or(std::vector<bmc::FirmwareItem>()))
      if (item.being_written) co_return "an image of " + item.name;
    auto copies = co_await bmc.backgroundCopies();
    if (!copies && copies.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(copies).error());
    for (const auto& copy : copies.value_or(std::vector<bmc::BackgroundCopy>()))
      if (copy.running)
        co_return fmt::format("the background copy of {} ({})", copy.name, copy.status);
    co_return std::string();
  }

  static bool needsPower(const Action& action) {
    return action.facet.facet.str().ends_with("-cycle");
  }

  /// When the operation cut standby power, if it did.
  static std::optional<WallTime> cutAt(const std::string& operation) {
    if (!operation.starts_with(kCut)) return std::nullopt;
    const auto time = parseWallTime(std::string_view(operation).substr(kCut.size()));
    return time ? std::optional(*time) : std::nullopt;
  }

  /// A step that was interrupted may have left the BMC on its way up, the machine off, or its
  /// outlets.
  static Async<Outcome> bringToEnd(bmc::Bmc& bmc, bool needs_power,
                                   std::optional<WallTime> cut_at) {
    auto system = co_await bmc.system();
    if (!system && system.error().canRetry() && cut_at) {
      if (auto restored = co_await bmc.restorePower(*cut_at); !restored)
        co_return Again{kLookAgain, "its power to be restored: " + restored.error().str()};
    }
    if (!system) co_return Again{kLookAgain, "the BMC to answer again: " + system.error().str()};
    if (needs_power && system->power != bmc::PowerState::On) {
      CO_TRY_OK(co_await bmc.power(bmc::PowerAction::On));
    }
    co_return Done{};
  }

  static Async<void> take(bmc::Bmc& bmc, Rung rung) {
    switch (rung) {
      case Rung::NewSession:
        return bmc.newSession();
      case Rung::BmcReset:
        return bmc.resetBmc();
      case Rung::PowerCycle:
        return bmc.power(bmc::PowerAction::ForceRestart);
      case Rung::AcCycle:
        return bmc.acCycle();
      case Rung::Retry:
      case Rung::Quarantine:
        break;
    }
    return refuse();
  }
  static Async<void> refuse() { co_return fail(ErrorCode::Internal, "this is not a BMC step"); }

  bmc::BmcFleet& bmcs_;
  Clock& clock_;
  std::map<Subject, Rung> asked_;
};

}  // namespace

std::string_view toString(Rung rung) {
  constexpr std::array<std::string_view, 6> kWords = {"retry",       "new-session", "bmc-reset",
                                                      "power-cycle", "ac-cycle",    "quarantine"};
  return kWords.at(static_cast<std::size_t>(rung));
}

std::optional<Rung> rungOf(const FacetRef& facet) {
  for (const auto rung : {Rung::NewSession, Rung::BmcReset, Rung::PowerCycle, Rung::AcCycle})
    if (facet.facet.str() == std::string(kRecoveryPrefix) + std::string(toString(rung)))
      return rung;
  return std::nullopt;
}

std::optional<RecoveryStep> nextStep(const std::vector<Intent>& journal,
                                     const inventory::MonitorPolicy& policy, WallTime now) {
  if (std::any_of(journal.begin(), journal.end(),
                  [](const Intent& intent) { return intent.state == IntentState::Open; }))
    return std::nullopt;
  const auto streak = streakOf(journal, now);
  if (streak.empty()) return std::nullopt;
  const auto failure = *std::find_if(streak.rbegin(), streak.rend(),
                                     [](const Intent* intent) { return !isStep(*intent); });
  if (failure->state != IntentState::Failed) return std::nullopt;
  const auto& last = *streak.back();
  if (isStep(last) && last.state == IntentState::Done) {
    const auto rung = rungOf(last.action.facet);
    return RecoveryStep{Rung::Retry, again(*failure, rung ? toString(*rung) : "a step"),
                        failure->outcome};
  }
  const auto tried = triedIn(streak);
  const int strongest = tried.empty() ? -1 : static_cast<int>(*tried.rbegin());
  for (const auto rung : policy.recovery) {
    if (static_cast<int>(rung) <= strongest) continue;
    if (rung == Rung::Retry)
      return RecoveryStep{rung, again(*failure, "its failure"), failure->outcome};
    if (rung == Rung::Quarantine)
      return RecoveryStep{rung,
                          {},
                          failure->action.facet.facet.str() +
                              " fails after every recovery step: " + failure->outcome};
    return RecoveryStep{rung, stepAction(*failure, rung), failure->outcome};
  }
  return std::nullopt;
}

std::unique_ptr<RecoverySteps> makeRecoverySteps(bmc::BmcFleet& bmcs, Clock& clock) {
  return std::make_unique<BmcSteps>(bmcs, clock);
}

}  // namespace muster::monitor
