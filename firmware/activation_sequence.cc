// SPDX-License-Identifier: Apache-2.0
// From the last upload of a wave until its versions run: resets, each journaled before it happens.
#include "base/async/poll.h"
#include "base/utf8.h"
#include "firmware/installation.h"
#include "firmware/shut_down.h"
#include "inventory/model/in_band.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Done;
using lifecycle::Outcome;

namespace {

constexpr auto kFirstLook = 300ms;
constexpr auto kStabilizePoll = 5s;
constexpr auto kCopyPoll = 10s;
constexpr auto kCordPoll = 60s;
constexpr std::size_t kMaxWhyBytes = 1'500;
constexpr auto kStabilizeLimit = 15min;  ///< a host shows its new BIOS only after POST
constexpr auto kCopyLimit =
    45min;  ///< of background copies; NVIDIA's factory flow waits for them before any power cycle
constexpr auto kResetGrace =
    10min;  ///< a BMC that may have been reset is left alone so long before it is reset again

std::string namesOf(const std::vector<Target>& staged, const std::string& otherwise) {
  std::string out;
  for (const auto& target : staged)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", target.component, target.version);
  return out.empty() ? otherwise : out;
}

}  // namespace

/// Nothing is switched while the BMC works on an update, whoever's it is.
Async<Outcome> Installation::activate() {
  CO_TRY(work, co_await whatIsWritten());
  if (!work.empty()) {
    CO_TRY_OK(co_await record(InstallStep::Next));
    co_return Again{kCopyPoll,
                    fmt::format("the BMC to end {}; nothing is switched before that", work)};
  }
  CO_TRY_OK(co_await noteStarting());
  const auto how = activation();
  const bool switches = how == Activation::PowerCycle || how == Activation::AcCycle;
  CO_TRY_OK(co_await record(switches ? InstallStep::Copy : InstallStep::Activate, clock_.now()));
  context_.progress(1, fmt::format("activating {} ({})", namesOf(progress_.staged, component_.name),
                                   toString(how)));
  if (switches) {
    co_return co_await waitForCopies();
  }
  if (how == Activation::BmcReset) {
    CO_TRY_OK(co_await bmc_.resetBmc());
  }
  co_return co_await beginStabilizing();
}

// The reset may have been received before muster died, and the BMC may install what was uploaded
// right now.
Async<Outcome> Installation::activateAgain() {
  if (activation() == Activation::BmcReset && clock_.now() < progress_.since + kResetGrace)
    co_return Again{kStabilizePoll,
                    fmt::format("the BMC may have been reset already; waiting for {}",
                                namesOf(progress_.staged, component_.name))};
  co_return co_await activate();
}

// A root of trust fills its second slot behind everybody's back; a power cut under it leaves one
// good copy less, or none.
Async<Outcome> Installation::waitForCopies() {
  CO_TRY(copies, co_await bmc_.backgroundCopies());
  const auto running = std::find_if(copies.begin(), copies.end(),
                                    [](const bmc::BackgroundCopy& copy) { return copy.running; });
  if (running != copies.end()) {
    if (clock_.now() < progress_.since + kCopyLimit)
      co_return Again{kCopyPoll, fmt::format("the background copy of {} to end ({})", running->name,
                                             running->status)};
    co_return co_await failWave(
        {fmt::format("the background copy of {} does not end", running->name), running->status,
         "its power must not be cut now; look at its root of trust, then: muster firmware retry " +
             node()});
  }
  co_return co_await powerOff();
}

// The guest is asked first; a node that is off is only switched on. Work may have begun since
// activate() looked: while second slots were filled, or while no muster ran.
Async<Outcome> Installation::powerOff() {
  CO_TRY(system, co_await bmc_.system());
  if (system.power != bmc::PowerState::Off || activation() == Activation::AcCycle) {
    CO_TRY(work, co_await whatIsWritten());
    if (!work.empty())
      co_return Again{kCopyPoll,
                      fmt::format("the BMC to end {}; nothing is switched before that", work)};
  }
  if (system.power != bmc::PowerState::Off) {
    CO_TRY_OK(co_await record(InstallStep::PowerOff));
    CO_TRY_OK(co_await shutDown(bmc_, clock_));
  }
  if (activation() == Activation::AcCycle) {
    co_return co_await cutStandby();
  }
  CO_TRY_OK(co_await record(InstallStep::PowerOn, clock_.now()));
  co_return co_await powerOn();
}

// A cut that may have been made is not made again while what it started may still be loading.
Async<Outcome> Installation::cutStandby() {
  if (progress_.step == InstallStep::AcCut && clock_.now() < progress_.since + kResetGrace)
    co_return Again{kStabilizePoll, "the standby power may have been cut already"};
  CO_TRY_OK(co_await record(InstallStep::AcCut, clock_.now()));
  auto done = co_await bmc_.acCycle();
  if (!done && done.error().code() == ErrorCode::NotFound) {
    CO_TRY_OK(co_await record(InstallStep::Copy, clock_.now()));
    co_return Again{kCordPoll,
                    fmt::format("its power cords to be pulled for 5 min ({})", done.error().str())};
  }
  CO_TRY_OK(std::move(done));
  CO_TRY_OK(co_await record(InstallStep::PowerOn, clock_.now()));
  co_return co_await powerOn();
}

// From here on power is only ever switched on: what was uploaded may be flashed in POST.
Async<Outcome> Installation::powerOn() {
  CO_TRY(system, co_await bmc_.system());
  if (system.power == bmc::PowerState::Off) {
    CO_TRY_OK(co_await bmc_.power(bmc::PowerAction::On));
  } else if (system.power == bmc::PowerState::Unknown &&
             clock_.now() < progress_.since + kStabilizeLimit) {
    co_return Again{kStabilizePoll, "its power to be on"};
  }
  co_return co_await beginStabilizing();
}

Async<bool> Installation::isOff() {
  CO_TRY(system, co_await bmc_.system());
  co_return system.power == bmc::PowerState::Off;
}

/// CPLDs and roots of trust load at standby, so they run while the host is still off.
Async<Outcome> Installation::allRun() {
  if (owesRestart()) {
    co_return co_await waitForCopies();
  }
  bool switch_on = progress_.step == InstallStep::PowerOff || progress_.step == InstallStep::AcCut;
  if (progress_.step == InstallStep::Copy) {
    CO_TRY(off, co_await isOff());
    switch_on = off;
  }
  if (switch_on) {
    CO_TRY_OK(co_await record(InstallStep::PowerOn, clock_.now()));
  }
  co_return co_await (switch_on ? powerOn() : waitUntilStable());
}

Async<Outcome> Installation::beginStabilizing() {
  CO_TRY_OK(co_await record(InstallStep::Stabilize, clock_.now()));
  co_return Again{kFirstLook, fmt::format("waiting for {} to be active",
                                          namesOf(progress_.staged, component_.name))};
}

Async<Outcome> Installation::stabilize(std::string seen) {
  const auto names = namesOf(progress_.staged, component_.name + " " + component_.version);
  if (clock_.now() < progress_.since + kStabilizeLimit) {
    const auto waited = clock_.now() - progress_.since;
    co_return Again{nextPollDelay(waited, kFirstLook, kStabilizePoll),
                    fmt::format("{} to be active: {}", names, seen)};
  }
  std::erase_if(progress_.staged, [this](const Target& target) { return runs(target); });
  if (const auto worse = degradedComponents(); worse.size() == 1) {
    co_return co_await rollBackComponent(worse.front(), seen);
  }
  co_return co_await failWave(
      {fmt::format("{} is not active, {} min after its activation: {}",
                   namesOf(progress_.staged, names), kStabilizeLimit.count(), seen),
       fmt::format("activation {}; the upload was reported as completed", toString(activation())),
       "check by hand what this component needs to activate; muster does not flash it again by "
       "itself"});
}

bool Installation::isDeclared(const Target& target) const { return imageOf(target).has_value(); }

/// Components that show nothing any more, and besides those of the BMC that cannot be read: then no
/// single image is the cause. What shows its old version is not worse; what went back already is
/// not taken back again.
std::vector<Target> Installation::degradedComponents() const {
  std::vector<Target> out;
  for (const auto& target : progress_.staged) {
    const auto shown =
        std::any_of(items_.begin(), items_.end(), [&](const bmc::FirmwareItem& item) {
          return item.name == target.component && item.unreadable.empty() && !item.version.empty();
        });
    if (!shown && isDeclared(target)) out.push_back(target);
  }
  for (const auto& item : items_) {
    const auto* component = baseline_.find(item.name);
    const bool by_agent =
        component && inventory::isInBand(*component);  // silent when the host does not come up
    const bool counted =
        std::any_of(progress_.staged.begin(), progress_.staged.end(),
                    [&](const Target& target) { return target.component == item.name; });
    if (!item.unreadable.empty() && !by_agent && !counted) out.push_back({item.name, {}});
  }
  return out;
}

/// The version that it can go back to without a forbidden combination. Errors: why there is no way
/// back
Async<std::string> Installation::rollbackVersion(Target worse) {
  CO_TRY(previous, co_await bmc_.previousImage(worse.component));
  Versions versions = probesOf(context_.facts(), action_.facet.subject);
  for (const auto& item : items_)
    if (item.unreadable.empty() && !item.version.empty()) versions[item.name] = item.version;
  const auto before = brokenConstraints(baseline_, versions);
  versions[worse.component] = previous;
  for (const auto& broken : brokenConstraints(baseline_, versions))
    if (std::find(before.begin(), before.end(), broken) == before.end())
      co_return fail(
          ErrorCode::Conflict,
          fmt::format("its previous image is {}, which is forbidden here: {}", previous, broken));
  co_return previous;
}

/// Journaled before it is ordered, and ordered once: a process that dies here goes on with the
/// activation, and the inventory decides.
Async<Outcome> Installation::rollBackComponent(Target worse, std::string seen) {
  const auto name = worse.component + " " + worse.version;
  auto previous = co_await rollbackVersion(worse);
  if (!previous && previous.error().canRetry() &&
      clock_.now() < progress_.since + 2 * kStabilizeLimit)
    co_return Again{kCopyPoll,
                    fmt::format("the way back from {}: {}", name, previous.error().str())};
  FailureReport report{fmt::format("{} left it worse: {} min after its activation {}", name,
                                   kStabilizeLimit.count(), seen),
                       "", "ask the vendor for a part: muster rma " + node()};
  if (!previous) {
    report.text += fmt::format("; there is no way back: {}", previous.error().str());
    co_return co_await failWave(std::move(report));
  }
  report.text += fmt::format("; its previous image {} is taken back", *previous);
  reportFinding(report);
  const auto earlier = progress_.failed ? progress_.failed->why + "; besides, " : std::string();
  progress_.failed =
      Failure{worse, std::string(cutToBytes(earlier + report.text, kMaxWhyBytes)), true};
  std::erase(progress_.staged, worse);
  progress_.staged.push_back({worse.component, *previous});
  CO_TRY_OK(co_await record(InstallStep::RollBack, clock_.now()));
  if (auto ordered = co_await bmc_.rollBack(worse.component);
      !ordered && !ordered.error().canRetry()) {
    co_return co_await failWave({fmt::format("{} could not be taken back to {}: {}",
                                             worse.component, *previous, ordered.error().str()),
                                 "", "ask the vendor for a part: muster rma " + node()});
  }
  co_return co_await activate();
}

/// Everything of the wave runs: it becomes the image to fall back to where the BMC asks for that,
/// and the next wave may begin.
Async<Outcome> Installation::endWave() {
  for (const auto& target : progress_.staged) {
    if (progress_.failed && !isDeclared(target))
      progress_.failed->why +=
          fmt::format(", and {} {} runs again", target.component, target.version);
    auto committed = co_await bmc_.commitImage(target.component);
    if (!committed && committed.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(committed.error()));
  }
  progress_.staged.clear();
  progress_.waits.clear();
  progress_.restarted.clear();
  progress_.starting.reset();
  if (progress_.failed) {
    co_return co_await repeatFailure();
  }
  if (runs({component_.name, action_.to})) co_return Done{};
  progress_.current = {};
  CO_TRY_OK(co_await record(InstallStep::Look));
  co_return co_await nextUpload();
}

}  // namespace muster::firmware
