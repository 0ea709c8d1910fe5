// SPDX-License-Identifier: Apache-2.0
#include "firmware/installation.h"

#include "firmware/poll_intervals.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/in_band.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Done;
using lifecycle::Outcome;

namespace {

constexpr auto kPatience = 15min;    ///< with an answer that no repetition should mend, while
                                     ///< something of ours is on the machine
constexpr auto kTrayStarts = 15min;  ///< after its host was switched on: POST of eight GPUs
constexpr auto kBeforeDeadline =
    10min;  ///< an intent ends itself, with its reason, before it is called off

}  // namespace

// ---- one call

/// Once something is on the machine an error is waited for, whatever it is, and an end is written
/// down before it is told: an intent that just fails would be followed by a new flash of what it
/// has staged.
Async<Outcome> Installation::go() {
  auto& stopwatch = wave_.stopwatch();
  const auto now = wave_.clock().steady();
  if (stopwatch.intent != wave_.context().intentId()) {
    stopwatch.intent = wave_.context().intentId();
    stopwatch.intent_began = now;
    stopwatch.odd_since.reset();
    stopwatch.starting_since.reset();
    stopwatch.switched_on.reset();
  }
  auto outcome = co_await step();
  if (outcome) stopwatch.odd_since.reset();
  const auto* again = outcome ? std::get_if<Again>(&*outcome) : nullptr;
  if ((outcome && !again) || wave_.progress().step == InstallStep::Over ||
      !wave_.mayBeOnTheMachine())
    co_return outcome;
  if (isLate()) {
    co_return co_await abortWith("it was not finished in time; last: " +
                                 (again ? again->waiting_for : outcome.error().str()));
  }
  if (again) co_return outcome;
  const auto why = outcome.error().str();
  if (!outcome.error().canRetry()) {
    if (!stopwatch.odd_since) stopwatch.odd_since = wave_.clock().steady();
    if (wave_.clock().steady() - *stopwatch.odd_since >= kPatience) {
      co_return co_await abortWith(why);
    }
  }
  co_return Again{kBusyPoll, why};
}

Async<Outcome> Installation::abortWith(std::string why) {
  co_return co_await run(failure_.abort(why));
}

bool Installation::isLate() const {
  const auto most = wave_.action().deadline - kBeforeDeadline;
  return most > kBeforeDeadline && wave_.clock().steady() - wave_.stopwatch().intent_began > most;
}

// ---- the steps

/// What is known before a step acts. A baseboard without its host shows little, and slowly: whoever
/// only has to switch it on does not read the inventory first.
enum class Installation::Needs { Nothing, Inventory, InventoryUnlessOff };

/// What is done while the inventory cannot be read.
enum class Installation::Unanswered { Fail, Wait, RestoreStandby, AwaitVersions };

struct Installation::StepRow {
  InstallStep step;
  Needs needs;
  bool activates;  ///< the uploads of the wave are over: once all that is staged runs, so is the
                   ///< step
  Continuation act;
  Unanswered unanswered;
  std::string_view ends;
};

/// Every step once, in the order of a wave. A process that finds one in the journal begins with it.
const Installation::StepRow& Installation::stepRow(InstallStep step) {
  using C = Continuation;
  using U = Unanswered;
  static constexpr StepRow kRows[] = {
      {InstallStep::Look, Needs::Inventory, false, C::ChooseUpload, U::Fail,
       "an image is sent, or the wave lacks none"},
      {InstallStep::Upload, Needs::Inventory, false, C::FindUpload, U::Wait,
       "the BMC lists its task, or nothing of it for a while"},
      {InstallStep::Follow, Needs::Nothing, false, C::FollowTask, U::Fail,
       "the task has ended, or is gone"},
      {InstallStep::Lost, Needs::Inventory, false, C::AwaitUnseen, U::Wait,
       "the version shows, or such a flash would be over twice"},
      {InstallStep::Next, Needs::Inventory, false, C::ChooseUpload, U::Wait,
       "the next image is sent, or the wave lacks none"},
      {InstallStep::Activate, Needs::Inventory, true, C::ActivateAgain, U::Wait,
       "the BMC was reset"},
      {InstallStep::Copy, Needs::Inventory, true, C::AwaitCopies, U::Wait,
       "no second slot is being filled"},
      {InstallStep::PowerOff, Needs::InventoryUnlessOff, true, C::PowerOff, U::Wait,
       "the host is off"},
      {InstallStep::AcCut, Needs::Inventory, true, C::CutStandby, U::RestoreStandby,
       "the standby power was cut and is back"},
      {InstallStep::PowerOn, Needs::Nothing, true, C::PowerOn, U::Fail, "the host is on"},
      {InstallStep::Stabilize, Needs::Inventory, true, C::AwaitVersions, U::AwaitVersions,
       "all that is staged runs, several looks in a row"},
      {InstallStep::RollBack, Needs::Inventory, true, C::Activate, U::Wait,
       "the previous image was activated"},
      {InstallStep::Over, Needs::Nothing, false, C::RepeatFailure, U::Fail, "never"},
  };
  return *std::ranges::find(kRows, step, &StepRow::step);
}

Async<Outcome> Installation::step() {
  const auto& progress = wave_.progress();
  const auto& row = stepRow(progress.step);
  bool acts_now = row.needs == Needs::Nothing;
  if (row.needs == Needs::InventoryUnlessOff && wave_.activation() != Activation::AcCycle) {
    const auto off = co_await activation_.isOff();
    acts_now = off && *off;
  }
  if (acts_now) {
    co_return co_await run(row.act);
  }
  auto seen = co_await wave_.readInventory();
  if (!seen && seen.error().canRetry() && row.unanswered != Unanswered::Fail) {
    co_return co_await unanswered(row.unanswered, seen.error().str());
  }
  if (!seen) co_return fail(std::move(seen.error()));
  const bool arrived = wave_.hasArrived();
  const bool other_is_written = progress.isWriting() && !progress.current.empty();
  if (arrived && progress.staged.empty() && !other_is_written) co_return Done{};
  // Once begun, what is not shown proves nothing: components vanish while they install, or while
  // the host is off.
  if (auto problem = wave_.trouble(); problem && progress.step == InstallStep::Look) {
    CO_TRY(waits, co_await switchedOn(*problem));
    if (waits) co_return std::move(*waits);
    co_return fail(std::move(*problem));
  }
  const bool all_run =
      row.activates && wave_.allStagedRun() && (arrived || !progress.staged.empty());
  co_return co_await run(all_run ? Continuation::AllRun : row.act);
}

/// A GPU tray has no power while its host is off, and its BMC answers 503 for it (DGX H100): the
/// host is switched on, and the tray given its time. Nothing: that is not why.
Async<std::optional<Outcome>> Installation::switchedOn(Error problem) {
  if (!problem.canRetry() || inventory::isInBand(wave_.component())) co_return std::nullopt;
  auto& at = wave_.stopwatch().switched_on;
  const auto& name = wave_.component().name;
  CO_TRY(off, co_await activation_.isOff());
  if (off && !at) {
    wave_.context().progress(
        0, fmt::format("switching {} on: {} cannot be read while it is off", wave_.node(), name));
    CO_TRY_OK(co_await wave_.bmc().power(bmc::PowerAction::On));
    at = wave_.clock().steady();
  }
  if (!at || wave_.clock().steady() - *at > kTrayStarts) co_return std::nullopt;
  co_return Outcome(
      Again{kStabilizePoll,
            fmt::format("{} was switched on for {}; the BMC to read it", wave_.node(), name)});
}

Async<Outcome> Installation::run(Continuation next) {
  for (;;) {
    CO_TRY(result, co_await perform(next));
    if (auto* outcome = std::get_if<Outcome>(&result)) co_return std::move(*outcome);
    next = std::get<Continuation>(result);
  }
}

Async<StepResult> Installation::perform(Continuation next) {
  switch (next) {
    case Continuation::ChooseUpload:
      return next_upload_.choose();
    case Continuation::Upload:
      return upload_.start();
    case Continuation::FindUpload:
      return upload_.findLost();
    case Continuation::FollowTask:
      return task_.follow();
    case Continuation::AwaitUnseen:
      return task_.awaitUnseen();
    case Continuation::Activate:
      return activation_.activate();
    case Continuation::ActivateAgain:
      return activation_.activateAgain();
    case Continuation::AwaitCopies:
      return activation_.awaitCopies();
    case Continuation::PowerOff:
      return activation_.powerOff();
    case Continuation::CutStandby:
      return activation_.cutStandby();
    case Continuation::PowerOn:
      return activation_.powerOn();
    case Continuation::AllRun:
      return activation_.allRun();
    case Continuation::AwaitVersions:
      return stabilization_.awaitVersions(wave_.whatIsMissing());
    case Continuation::WaitUntilStable:
      return stabilization_.waitUntilStable();
    case Continuation::RepeatFailure:
      break;
  }
  return failure_.repeat();
}

/// It installs, restarts, or was restarting when muster died.
Async<Outcome> Installation::unanswered(Unanswered how, std::string why) {
  if (how == Unanswered::AwaitVersions) {
    CO_TRY(result, co_await stabilization_.awaitVersions("no answer: " + why));
    if (auto* outcome = std::get_if<Outcome>(&result)) co_return std::move(*outcome);
    co_return co_await run(std::get<Continuation>(result));
  }
  if (how == Unanswered::RestoreStandby)
    if (auto restored = co_await activation_.restoreStandby(); !restored)
      co_return Again{kBusyPoll, "its power to be given back: " + restored.error().str()};
  co_return Again{kStabilizePoll, "the BMC does not answer: " + why};
}

}  // namespace muster::firmware
