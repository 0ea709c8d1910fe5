// SPDX-License-Identifier: Apache-2.0
#include "firmware/activation_sequence.h"

#include "bmc/shut_down.h"
#include "firmware/poll_intervals.h"
#include "inventory/model/firmware.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;

namespace {

constexpr auto kCopyPoll = 10s;
constexpr auto kCordPoll = 60s;
constexpr auto kCopyLimit =
    45min;  ///< of background copies; NVIDIA's factory flow waits for them before any power cycle
constexpr auto kResetGrace =
    10min;  ///< a BMC that may have been reset is left alone so long before it is reset again
constexpr auto kPowerShows = 15min;  ///< until a host that is switched on says so

}  // namespace

Async<StepResult> ActivationSequence::activate() {
  CO_TRY(work, co_await wave_.whatIsWritten());
  if (!work.empty()) {
    CO_TRY_OK(co_await wave_.record(InstallStep::Next));
    co_return Again{kCopyPoll,
                    fmt::format("the BMC to end {}; nothing is switched before that", work)};
  }
  CO_TRY_OK(co_await noteStarting());
  const auto how = wave_.activation();
  const bool switches = how == Activation::PowerCycle || how == Activation::AcCycle;
  CO_TRY_OK(co_await wave_.record(switches ? InstallStep::Copy : InstallStep::Activate,
                                  wave_.clock().now()));
  wave_.context().progress(
      1,
      fmt::format("activating {} ({})", wave_.stagedNames(wave_.component().name), toString(how)));
  if (switches) {
    co_return Continuation::AwaitCopies;
  }
  if (how == Activation::BmcReset) {
    CO_TRY_OK(co_await wave_.bmc().resetBmc());
  }
  co_return co_await beginStabilizing();
}

// The reset may have been received before muster died, and the BMC may install what was uploaded
// right now.
Async<StepResult> ActivationSequence::activateAgain() {
  if (wave_.activation() == Activation::BmcReset &&
      wave_.clock().now() < wave_.progress().since + kResetGrace)
    co_return Again{kStabilizePoll,
                    fmt::format("the BMC may have been reset already; waiting for {}",
                                wave_.stagedNames(wave_.component().name))};
  co_return Continuation::Activate;
}

Async<StepResult> ActivationSequence::awaitCopies() {
  CO_TRY(copies, co_await wave_.bmc().backgroundCopies());
  const auto running = std::find_if(copies.begin(), copies.end(),
                                    [](const bmc::BackgroundCopy& copy) { return copy.running; });
  if (running != copies.end()) {
    if (wave_.clock().now() < wave_.progress().since + kCopyLimit)
      co_return Again{kCopyPoll, fmt::format("the background copy of {} to end ({})", running->name,
                                             running->status)};
    co_return failure_.failWave(
        {fmt::format("the background copy of {} does not end", running->name), running->status,
         "its power must not be cut now; look at its root of trust, then: muster firmware retry " +
             wave_.node()});
  }
  co_return co_await powerOff();
}

// Work may have begun since activate() looked: while second slots were filled, or while no muster
// ran.
Async<StepResult> ActivationSequence::powerOff() {
  CO_TRY(system, co_await wave_.bmc().system());
  if (system.power != bmc::PowerState::Off || wave_.activation() == Activation::AcCycle) {
    CO_TRY(work, co_await wave_.whatIsWritten());
    if (!work.empty())
      co_return Again{kCopyPoll,
                      fmt::format("the BMC to end {}; nothing is switched before that", work)};
  }
  if (system.power != bmc::PowerState::Off) {
    CO_TRY_OK(co_await wave_.record(InstallStep::PowerOff));
    CO_TRY_OK(co_await bmc::shutDown(wave_.bmc(), wave_.clock()));
  }
  if (wave_.activation() == Activation::AcCycle) {
    co_return co_await cutStandby();
  }
  CO_TRY_OK(co_await wave_.record(InstallStep::PowerOn, wave_.clock().now()));
  co_return co_await powerOn();
}

Async<StepResult> ActivationSequence::cutStandby() {
  if (wave_.progress().step == InstallStep::AcCut &&
      wave_.clock().now() < wave_.progress().since + kResetGrace)
    co_return Again{kStabilizePoll, "the standby power may have been cut already"};
  CO_TRY_OK(co_await wave_.record(InstallStep::AcCut, wave_.clock().now()));
  auto done = co_await wave_.bmc().acCycle();
  if (!done && done.error().code() == ErrorCode::NotFound) {
    CO_TRY_OK(co_await wave_.record(InstallStep::Copy, wave_.clock().now()));
    co_return Again{kCordPoll,
                    fmt::format("its power cords to be pulled for 5 min ({})", done.error().str())};
  }
  CO_TRY_OK(std::move(done));
  CO_TRY_OK(co_await wave_.record(InstallStep::PowerOn, wave_.clock().now()));
  co_return co_await powerOn();
}

Async<StepResult> ActivationSequence::powerOn() {
  CO_TRY(system, co_await wave_.bmc().system());
  if (system.power == bmc::PowerState::Off) {
    CO_TRY_OK(co_await wave_.bmc().power(bmc::PowerAction::On));
  } else if (system.power == bmc::PowerState::Unknown &&
             wave_.clock().now() < wave_.progress().since + kPowerShows) {
    co_return Again{kStabilizePoll, "its power to be on"};
  }
  co_return co_await beginStabilizing();
}

Async<StepResult> ActivationSequence::allRun() {
  if (owesRestart()) {
    co_return Continuation::AwaitCopies;
  }
  bool switch_on =
      wave_.progress().step == InstallStep::PowerOff || wave_.progress().step == InstallStep::AcCut;
  if (wave_.progress().step == InstallStep::Copy) {
    CO_TRY(off, co_await isOff());
    switch_on = off;
  }
  if (switch_on) {
    CO_TRY_OK(co_await wave_.record(InstallStep::PowerOn, wave_.clock().now()));
  }
  co_return switch_on ? Continuation::PowerOn : Continuation::WaitUntilStable;
}

Async<bool> ActivationSequence::isOff() {
  CO_TRY(system, co_await wave_.bmc().system());
  co_return system.power == bmc::PowerState::Off;
}

Async<StepResult> ActivationSequence::beginStabilizing() {
  CO_TRY_OK(co_await wave_.record(InstallStep::Stabilize, wave_.clock().now()));
  co_return Again{kFirstLook, fmt::format("waiting for {} to be active",
                                          wave_.stagedNames(wave_.component().name))};
}

/// What started before anything was switched is not waited for afterwards: some BMCs say Starting
/// for ever. The journal holds it for the process that sees the end of the wave.
Async<void> ActivationSequence::noteStarting() {
  auto& progress = wave_.progress();
  if (progress.starting || !progress.restarted.empty() || progress.step == InstallStep::RollBack)
    co_return Result<void>();
  const auto devices = co_await wave_.bmc().devicesNotReady();
  if (!devices) co_return Result<void>();
  progress.starting.emplace();
  for (const auto& device : *devices) progress.starting->insert(device.name);
  co_return Result<void>();
}

/// A restart that was decided on is not over before the host was off: whoever died in between goes
/// on with it.
bool ActivationSequence::owesRestart() const {
  return !wave_.progress().restarted.empty() && (wave_.progress().step == InstallStep::Copy ||
                                                 wave_.progress().step == InstallStep::PowerOff);
}

Async<void> ActivationSequence::restoreStandby() {
  co_return co_await wave_.bmc().restorePower(wave_.progress().since);
}

}  // namespace muster::firmware
