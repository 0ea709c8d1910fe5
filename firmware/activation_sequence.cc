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
constexpr auto kSettlePoll = 5s;
constexpr auto kCopyPoll = 10s;
constexpr auto kCordPoll = 60s;
constexpr std::size_t kMaxWhyBytes = 1'500;
constexpr auto kSettleLimit = 15min;   ///< a host shows its new BIOS only after POST
constexpr auto kCopyLimit = 45min;     ///< of background copies; NVIDIA's factory flow waits for them before any power cycle
constexpr auto kResetGrace = 10min;    ///< a BMC that may have been reset is left alone so long before it is reset again

std::string namesOf(const std::vector<Target>& staged, const std::string& otherwise) {
  std::string out;
  for (const auto& target : staged) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", target.component, target.version);
  return out.empty() ? otherwise : out;
}

}  // namespace

/// Nothing is switched while the BMC works on an update, whoever's it is.
Async<Outcome> Installation::activate() {
  auto look = whatIsWritten();
  CO_TRY(work, co_await std::move(look));
  if (!work.empty()) {
    auto wait = record(Step::Next);
    CO_TRY_OK(co_await std::move(wait));
    co_return Again{kCopyPoll, fmt::format("the BMC to end {}; nothing is switched before that", work)};
  }
  auto note = noteStarting();
  CO_TRY_OK(co_await std::move(note));
  const auto how = activation();
  const bool switches = how == Activation::PowerCycle || how == Activation::AcCycle;
  auto written = record(switches ? Step::Copy : Step::Activate, clock_.now());
  CO_TRY_OK(co_await std::move(written));
  context_.progress(1, fmt::format("activating {} ({})", namesOf(progress_.staged, component_.name), toString(how)));
  if (switches) {
    auto copies = waitForCopies();
    co_return co_await std::move(copies);
  }
  if (how == Activation::BmcReset) {
    auto reset = bmc_.resetBmc();
    CO_TRY_OK(co_await std::move(reset));
  }
  auto settling = beginSettling();
  co_return co_await std::move(settling);
}

// The reset may have been received before muster died, and the BMC may install what was uploaded right now.
Async<Outcome> Installation::activateAgain() {
  if (activation() == Activation::BmcReset && clock_.now() < progress_.since + kResetGrace)
    co_return Again{kSettlePoll, fmt::format("the BMC may have been reset already; waiting for {}", namesOf(progress_.staged, component_.name))};
  auto next = activate();
  co_return co_await std::move(next);
}

// A root of trust fills its second slot behind everybody's back; a power cut under it leaves one good copy less, or none.
Async<Outcome> Installation::waitForCopies() {
  auto ask = bmc_.backgroundCopies();
  CO_TRY(copies, co_await std::move(ask));
  const auto running = std::find_if(copies.begin(), copies.end(), [](const bmc::BackgroundCopy& copy) { return copy.running; });
  if (running != copies.end()) {
    if (clock_.now() < progress_.since + kCopyLimit) co_return Again{kCopyPoll, fmt::format("the background copy of {} to end ({})", running->name, running->status)};
    auto end = endBadly({fmt::format("the background copy of {} does not end", running->name), running->status,
                         "its power must not be cut now; look at its root of trust, then: muster firmware retry " + node()});
    co_return co_await std::move(end);
  }
  auto next = powerOff();
  co_return co_await std::move(next);
}

// The guest is asked first; a node that is off is only switched on. Work may have begun since activate() looked: while second slots were filled, or
// while no muster ran.
Async<Outcome> Installation::powerOff() {
  auto read = bmc_.system();
  CO_TRY(system, co_await std::move(read));
  if (system.power != bmc::PowerState::Off || activation() == Activation::AcCycle) {
    auto look = whatIsWritten();
    CO_TRY(work, co_await std::move(look));
    if (!work.empty()) co_return Again{kCopyPoll, fmt::format("the BMC to end {}; nothing is switched before that", work)};
  }
  if (system.power != bmc::PowerState::Off) {
    auto written = record(Step::PowerOff);
    CO_TRY_OK(co_await std::move(written));
    auto down = shutDown(bmc_, clock_);
    CO_TRY_OK(co_await std::move(down));
  }
  if (activation() == Activation::AcCycle) {
    auto cut = cutStandby();
    co_return co_await std::move(cut);
  }
  auto written = record(Step::PowerOn, clock_.now());
  CO_TRY_OK(co_await std::move(written));
  auto on = powerOn();
  co_return co_await std::move(on);
}

// A cut that may have been made is not made again while what it started may still be loading.
Async<Outcome> Installation::cutStandby() {
  if (progress_.step == Step::AcCut && clock_.now() < progress_.since + kResetGrace)
    co_return Again{kSettlePoll, "the standby power may have been cut already"};
  auto written = record(Step::AcCut, clock_.now());
  CO_TRY_OK(co_await std::move(written));
  auto cut = bmc_.acCycle();
  auto done = co_await std::move(cut);
  if (!done && done.error().code() == ErrorCode::NotFound) {
    auto back = record(Step::Copy, clock_.now());
    CO_TRY_OK(co_await std::move(back));
    co_return Again{kCordPoll, fmt::format("somebody to take its power away for 5 min ({})", done.error().str())};
  }
  CO_TRY_OK(std::move(done));
  auto on_next = record(Step::PowerOn, clock_.now());
  CO_TRY_OK(co_await std::move(on_next));
  auto on = powerOn();
  co_return co_await std::move(on);
}

// From here on power is only ever switched on: what was uploaded may be flashed in POST.
Async<Outcome> Installation::powerOn() {
  auto read = bmc_.system();
  CO_TRY(system, co_await std::move(read));
  if (system.power == bmc::PowerState::Off) {
    auto on = bmc_.power(bmc::PowerAction::On);
    CO_TRY_OK(co_await std::move(on));
  } else if (system.power == bmc::PowerState::Unknown && clock_.now() < progress_.since + kSettleLimit) {
    co_return Again{kSettlePoll, "its power to be on"};
  }
  auto settling = beginSettling();
  co_return co_await std::move(settling);
}

Async<bool> Installation::isOff() {
  auto read = bmc_.system();
  CO_TRY(system, co_await std::move(read));
  co_return system.power == bmc::PowerState::Off;
}

/// CPLDs and roots of trust load at standby, so they run while the host is still off.
Async<Outcome> Installation::allRun() {
  if (owesRestart()) {
    auto restart = waitForCopies();
    co_return co_await std::move(restart);
  }
  bool switch_on = progress_.step == Step::PowerOff || progress_.step == Step::AcCut;
  if (progress_.step == Step::Copy) {
    auto ask = isOff();
    CO_TRY(off, co_await std::move(ask));
    switch_on = off;
  }
  if (switch_on) {
    auto written = record(Step::PowerOn, clock_.now());
    CO_TRY_OK(co_await std::move(written));
  }
  auto next = switch_on ? powerOn() : endWhenCalm();
  co_return co_await std::move(next);
}

Async<Outcome> Installation::beginSettling() {
  auto write = record(Step::Settle, clock_.now());
  CO_TRY_OK(co_await std::move(write));
  co_return Again{kFirstLook, fmt::format("waiting for {} to be active", namesOf(progress_.staged, component_.name))};
}

Async<Outcome> Installation::settle(std::string seen) {
  const auto names = namesOf(progress_.staged, component_.name + " " + component_.version);
  if (clock_.now() < progress_.since + kSettleLimit) {
    const auto waited = clock_.now() - progress_.since;
    co_return Again{lookAgainAfter(waited, kFirstLook, kSettlePoll), fmt::format("{} to be active: {}", names, seen)};
  }
  std::erase_if(progress_.staged, [this](const Target& target) { return runs(target); });
  if (const auto worse = leftWorse(); worse.size() == 1) {
    auto back = goBack(worse.front(), seen);
    co_return co_await std::move(back);
  }
  auto end = endBadly({fmt::format("{} is not active, {} min after its activation: {}", namesOf(progress_.staged, names), kSettleLimit.count(), seen),
                       fmt::format("activation {}; the upload was reported as completed", toString(activation())),
                       "check by hand what this component needs to activate; muster does not flash it again by itself"});
  co_return co_await std::move(end);
}

bool Installation::isDeclared(const Target& target) const { return imageOf(target).has_value(); }

/// Components that show nothing any more, and besides those of the BMC that cannot be read: then no single image is the cause. What shows
/// its old version is not worse; what went back already is not taken back again.
std::vector<Target> Installation::leftWorse() const {
  std::vector<Target> out;
  for (const auto& target : progress_.staged) {
    const auto shown = std::any_of(items_.begin(), items_.end(), [&](const bmc::FirmwareItem& item) { return item.name == target.component && item.unreadable.empty() && !item.version.empty(); });
    if (!shown && isDeclared(target)) out.push_back(target);
  }
  for (const auto& item : items_) {
    const auto* component = baseline_.find(item.name);
    const bool by_agent = component && inventory::isInBand(*component);  // silent when the host does not come up
    const bool counted = std::any_of(progress_.staged.begin(), progress_.staged.end(), [&](const Target& target) { return target.component == item.name; });
    if (!item.unreadable.empty() && !by_agent && !counted) out.push_back({item.name, {}});
  }
  return out;
}

/// The version that it can go back to without a forbidden combination. Errors: why there is no way back
Async<std::string> Installation::whereTo(Target worse) {
  auto ask = bmc_.previousImage(worse.component);
  CO_TRY(previous, co_await std::move(ask));
  Versions versions = probesOf(context_.facts(), action_.facet.subject);
  for (const auto& item : items_)
    if (item.unreadable.empty() && !item.version.empty()) versions[item.name] = item.version;
  const auto before = brokenConstraints(baseline_.constraints, versions);
  versions[worse.component] = previous;
  for (const auto& broken : brokenConstraints(baseline_.constraints, versions))
    if (std::find(before.begin(), before.end(), broken) == before.end()) co_return fail(ErrorCode::Conflict, fmt::format("its previous image is {}, which is forbidden here: {}", previous, broken));
  co_return previous;
}

/// Journaled before it is ordered, and ordered once: a process that dies here goes on with the activation, and the inventory decides.
Async<Outcome> Installation::goBack(Target worse, std::string seen) {
  const auto name = worse.component + " " + worse.version;
  auto look = whereTo(worse);
  auto previous = co_await std::move(look);
  if (!previous && previous.error().canRetry() && clock_.now() < progress_.since + 2 * kSettleLimit) co_return Again{kCopyPoll, fmt::format("the way back from {}: {}", name, previous.error().str())};
  Verdict verdict{fmt::format("{} left it worse: {} min after its activation {}", name, kSettleLimit.count(), seen), "", "ask the vendor for a part: muster rma " + node()};
  if (!previous) {
    verdict.text += fmt::format("; there is no way back: {}", previous.error().str());
    auto end = endBadly(std::move(verdict));
    co_return co_await std::move(end);
  }
  verdict.text += fmt::format("; its previous image {} is taken back", *previous);
  say(verdict);
  const auto earlier = progress_.failed ? progress_.failed->why + "; besides, " : std::string();
  progress_.failed = Failure{worse, std::string(cutToBytes(earlier + verdict.text, kMaxWhyBytes)), true};
  std::erase(progress_.staged, worse);
  progress_.staged.push_back({worse.component, *previous});
  auto written = record(Step::RollBack, clock_.now());
  CO_TRY_OK(co_await std::move(written));
  auto order = bmc_.rollBack(worse.component);
  if (auto ordered = co_await std::move(order); !ordered && !ordered.error().canRetry()) {
    auto end = endBadly({fmt::format("{} could not be taken back to {}: {}", worse.component, *previous, ordered.error().str()), "", "ask the vendor for a part: muster rma " + node()});
    co_return co_await std::move(end);
  }
  auto next = activate();
  co_return co_await std::move(next);
}

/// Everything of the wave runs: it becomes the image to fall back to where the BMC asks for that, and the next wave may begin.
Async<Outcome> Installation::endWave() {
  for (const auto& target : progress_.staged) {
    if (progress_.failed && !isDeclared(target)) progress_.failed->why += fmt::format(", and {} {} runs again", target.component, target.version);
    auto commit = bmc_.commitImage(target.component);
    auto committed = co_await std::move(commit);
    if (!committed && committed.error().code() != ErrorCode::NotFound) co_return fail(std::move(committed.error()));
  }
  progress_.staged.clear();
  progress_.waits.clear();
  progress_.restarted.clear();
  progress_.starting.reset();
  if (progress_.failed) {
    auto end = over();
    co_return co_await std::move(end);
  }
  if (runs({component_.name, action_.to})) co_return Done{};
  progress_.current = {};
  auto written = record(Step::Look);
  CO_TRY_OK(co_await std::move(written));
  auto next = nextUpload();
  co_return co_await std::move(next);
}

}  // namespace muster::firmware
