// SPDX-License-Identifier: Apache-2.0
// From the first look to the activation. Whatever the journal or a task says, the inventory
// decides.
#include "firmware/installation.h"

#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Outcome;

namespace {

constexpr auto kFirstLook = 300ms;
constexpr auto kTaskPoll = 2s;
constexpr auto kBusyPoll = 10s;
constexpr auto kStabilizePoll = 5s;
constexpr int kMaxUploadsTried = 8;  ///< attempts of which none is known to have arrived; a
                                     ///< controller that is killed cuts one off too
constexpr auto kUploadGrace =
    2min;  ///< for a slow BMC to list an upload whose answer was lost; looked at every kBusyPoll
constexpr int kUsualTimesUnseen = 2;  ///< so many usual times a flash has that nobody can follow
constexpr auto kPatience = 15min;     ///< with an answer that no repetition should mend, while
                                      ///< something of ours is on the machine
constexpr auto kSupplyReturns =
    5min;  ///< until a power supply that restarted shows that it is well
constexpr auto kBeforeDeadline =
    10min;  ///< an intent ends itself, with its reason, before it is called off

std::string nameOf(const Target& target) { return target.component + " " + target.version; }

}  // namespace

// ---- what is seen

Async<void> Installation::readInventory() {
  CO_TRY(items, co_await bmc_.firmware());
  items_ = std::move(items);
  co_return Result<void>();
}

bool Installation::runs(const Target& target) const {
  return std::any_of(items_.begin(), items_.end(), [&](const bmc::FirmwareItem& item) {
    return item.name == target.component && item.unreadable.empty() &&
           lifecycle::matches(target.version, item.version);
  });
}

bool Installation::isBeingWritten() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const bmc::FirmwareItem& item) { return item.being_written; });
}

bool Installation::allStagedRun() const {
  return std::all_of(progress_.staged.begin(), progress_.staged.end(),
                     [this](const Target& target) { return runs(target); });
}

/// Of vendors that name members inside, an unreadable one may be any.
std::optional<Error> Installation::trouble() const {
  const auto& name = component_.name;
  const bmc::FirmwareItem* unread = nullptr;
  for (const auto& item : items_) {
    if (!item.unreadable.empty() && (!unread || item.name == name)) unread = &item;
    if (item.name == name && item.unreadable.empty()) return std::nullopt;
  }
  if (unread)
    return Error(
        ErrorCode::Unavailable,
        fmt::format("{} lists {} but cannot read it now: {}{}", bmc_.address(), unread->name,
                    unread->unreadable,
                    unread->name == name ? "" : "; " + name + " is not listed, or it is that one"));
  return Error(ErrorCode::NotFound,
               fmt::format("{} lists no firmware component {}; correct its name in the baseline",
                           bmc_.address(), name));
}

std::string Installation::whatIsMissing() const {
  if (const auto problem = trouble()) return problem->str();
  auto wanted = progress_.staged;
  if (wanted.empty()) wanted.push_back({component_.name, component_.version});
  std::string words;
  for (const auto& target : wanted) {
    if (runs(target)) continue;
    const auto item =
        std::find_if(items_.begin(), items_.end(),
                     [&](const bmc::FirmwareItem& each) { return each.name == target.component; });
    words += fmt::format("{}{} shows {}", words.empty() ? "" : ", ", target.component,
                         item == items_.end() ? "nothing" : item->version);
  }
  return words;
}

Target Installation::target() const {
  return progress_.current.empty() ? Target{component_.name, component_.version}
                                   : progress_.current;
}

Result<inventory::FirmwareImageFile> Installation::imageOf(const Target& target) const {
  if (const auto* component = baseline_.find(target.component)) {
    if (component->version == target.version)
      return inventory::FirmwareImageFile{component->version, component->file, component->sha256};
    for (const auto& intermediate : component->intermediate)
      if (intermediate.version == target.version) return intermediate;
  }
  return fail(ErrorCode::InvalidInput,
              fmt::format("the baseline does not declare {} any more; plan again", nameOf(target)));
}

/// The strongest that what is staged needs.
Activation Installation::activation() const {
  if (!progress_.restarted.empty()) return Activation::PowerCycle;
  if (progress_.staged.empty()) return activationOf(component_);
  Activation strongest = progress_.waits.empty() ? Activation::None : Activation::PowerCycle;
  for (const auto& target : progress_.staged)
    if (const auto* component = baseline_.find(target.component))
      strongest = std::max(strongest, activationOf(*component));
  return strongest;
}

// ---- the journal, and words

Async<void> Installation::record(InstallStep step) {
  progress_.step = step;
  co_return co_await context_.recordOperation(progress_.str());
}

Async<void> Installation::record(InstallStep step, WallTime since) {
  progress_.since = since;
  co_return co_await record(step);
}

// ---- one call

/// Once something is on the machine an error is waited for, whatever it is, and an end is written
/// down before it is told: an intent that just fails would be followed by a new flash of what it
/// has staged.
Async<Outcome> Installation::go() {
  if (stopwatch_.intent != context_.intentId()) {
    stopwatch_.intent = context_.intentId();
    stopwatch_.intent_began = clock_.steady();
    stopwatch_.odd_since.reset();
    stopwatch_.starting_since.reset();
  }
  auto outcome = co_await step();
  if (outcome) stopwatch_.odd_since.reset();
  const auto* again = outcome ? std::get_if<Again>(&*outcome) : nullptr;
  if ((outcome && !again) || progress_.step == InstallStep::Over || !mayBeOnTheMachine())
    co_return outcome;
  if (isLate()) {
    co_return co_await abortWith("it was not finished in time; last: " +
                                 (again ? again->waiting_for : outcome.error().str()));
  }
  if (again) co_return outcome;
  const auto why = outcome.error().str();
  if (!outcome.error().canRetry()) {
    if (!stopwatch_.odd_since) stopwatch_.odd_since = clock_.steady();
    if (clock_.steady() - *stopwatch_.odd_since >= kPatience) {
      co_return co_await abortWith(why);
    }
  }
  co_return Again{kBusyPoll, why};
}

bool Installation::isLate() const {
  const auto most = action_.deadline - kBeforeDeadline;
  return most > kBeforeDeadline && clock_.steady() - stopwatch_.intent_began > most;
}

// ---- the steps

/// What is known before a step acts. A baseboard without its host shows little, and slowly: whoever
/// only has to switch it on does not read the inventory first.
enum class Installation::Needs { Nothing, Inventory, InventoryUnlessOff };

struct Installation::StepRow {
  InstallStep step;
  Needs needs;
  bool activates;  ///< the uploads of the wave are over: once all that is staged runs, so is the
                   ///< step
  Async<Outcome> (Installation::*act)();
  Async<Outcome> (Installation::*unanswered)(std::string why);  ///< instead, while the inventory
                                                                ///< cannot be read; null: an error
  std::string_view ends;
};

/// Every step once, in the order of a wave. A process that finds one in the journal begins with it.
const Installation::StepRow& Installation::stepRow(InstallStep step) {
  using I = Installation;
  static constexpr StepRow kRows[] = {
      {InstallStep::Look, Needs::Inventory, false, &I::nextUpload, nullptr,
       "an image is sent, or the wave lacks none"},
      {InstallStep::Upload, Needs::Inventory, false, &I::afterLostUpload, &I::waitForAnswer,
       "the BMC lists its task, or nothing of it for a while"},
      {InstallStep::Follow, Needs::Nothing, false, &I::follow, nullptr,
       "the task has ended, or is gone"},
      {InstallStep::Lost, Needs::Inventory, false, &I::lost, &I::waitForAnswer,
       "the version shows, or such a flash would be over twice"},
      {InstallStep::Next, Needs::Inventory, false, &I::nextUpload, &I::waitForAnswer,
       "the next image is sent, or the wave lacks none"},
      {InstallStep::Activate, Needs::Inventory, true, &I::activateAgain, &I::waitForAnswer,
       "the BMC was reset"},
      {InstallStep::Copy, Needs::Inventory, true, &I::waitForCopies, &I::waitForAnswer,
       "no second slot is being filled"},
      {InstallStep::PowerOff, Needs::InventoryUnlessOff, true, &I::powerOff, &I::waitForAnswer,
       "the host is off"},
      {InstallStep::AcCut, Needs::Inventory, true, &I::cutStandby, &I::restoreStandby,
       "the standby power was cut and is back"},
      {InstallStep::PowerOn, Needs::Nothing, true, &I::powerOn, nullptr, "the host is on"},
      {InstallStep::Stabilize, Needs::Inventory, true, &I::stabilizeBySight,
       &I::stabilizeUnanswered, "all that is staged runs, several looks in a row"},
      {InstallStep::RollBack, Needs::Inventory, true, &I::activate, &I::waitForAnswer,
       "the previous image was activated"},
      {InstallStep::Over, Needs::Nothing, false, &I::repeatFailure, nullptr, "never"},
  };
  return *std::ranges::find(kRows, step, &StepRow::step);
}

Async<Outcome> Installation::step() {
  const auto& row = stepRow(progress_.step);
  bool acts_now = row.needs == Needs::Nothing;
  if (row.needs == Needs::InventoryUnlessOff && activation() != Activation::AcCycle) {
    const auto off = co_await isOff();
    acts_now = off && *off;
  }
  if (acts_now) {
    co_return co_await (this->*row.act)();
  }
  auto seen = co_await readInventory();
  if (!seen && seen.error().canRetry() && row.unanswered) {
    co_return co_await (this->*row.unanswered)(seen.error().str());
  }
  if (!seen) co_return fail(std::move(seen.error()));
  const bool arrived = runs({component_.name, action_.to});
  const bool other_is_written = progress_.isWriting() && !progress_.current.empty();
  if (arrived && progress_.staged.empty() && !other_is_written) co_return Done{};
  // Once begun, what is not shown proves nothing: components vanish while they install, or while
  // the host is off.
  if (auto problem = trouble(); problem && progress_.step == InstallStep::Look)
    co_return fail(std::move(*problem));
  const bool all_run = row.activates && allStagedRun() && (arrived || !progress_.staged.empty());
  co_return co_await (all_run ? allRun() : (this->*row.act)());
}

/// It installs, restarts, or was restarting when muster died.
Async<Outcome> Installation::waitForAnswer(std::string why) {
  co_return Again{kStabilizePoll, "the BMC does not answer: " + why};
}

/// muster may have died between off and on.
Async<Outcome> Installation::restoreStandby(std::string why) {
  if (auto restored = co_await bmc_.restorePower(progress_.since); !restored)
    co_return Again{kBusyPoll, "its power to be given back: " + restored.error().str()};
  co_return co_await waitForAnswer(std::move(why));
}

Async<Outcome> Installation::stabilizeBySight() { return stabilize(whatIsMissing()); }

Async<Outcome> Installation::stabilizeUnanswered(std::string why) {
  return stabilize("no answer: " + why);
}

// ---- uploads

/// What the wave still lacks; when it lacks nothing, its activation.
Async<Outcome> Installation::nextUpload() {
  if (progress_.failed || !progress_.waits.empty() || !progress_.restarted.empty()) {
    co_return co_await activate();
  }
  // A plan blocks it already; keep's recovery tries the action again without one.
  if (auto again = whyNotAgain(component_, action_.facet.subject, context_.facts());
      !again.empty() && progress_.staged.empty())
    co_return Blocked{std::move(again)};
  if (const auto problem = trouble(); problem && problem->canRetry())
    co_return Again{kBusyPoll, problem->str()};
  CO_TRY(why_not, co_await whyNot(Target{component_.name, component_.version}));
  if (!why_not.empty() && progress_.staged.empty()) co_return Blocked{why_not};
  Versions running = probesOf(context_.facts(), action_.facet.subject);
  for (const auto& item : items_)
    if (item.unreadable.empty() && !item.version.empty()) running[item.name] = item.version;
  const auto schedule = solve(baseline_, running);
  if (const auto* undone = schedule.undoneOf(component_.name); undone && progress_.staged.empty())
    co_return Blocked{fmt::format("{} {} cannot be installed: {}", component_.name,
                                  component_.version, undone->why)};
  auto isStaged = [this](const std::string& name) {
    return std::any_of(progress_.staged.begin(), progress_.staged.end(),
                       [&](const Target& each) { return each.component == name; });
  };
  const auto* wave = nextWaveFor(component_.name, schedule, baseline_, running);
  const auto steps = wave ? wave->steps : std::vector<UpdateStep>();
  const bool same_wave = progress_.staged.empty() ||
                         std::any_of(steps.begin(), steps.end(), [&](const UpdateStep& step) {
                           return isStaged(step.component->name);
                         });
  for (const auto& step : steps) {
    if (!same_wave || isStaged(step.component->name)) continue;
    const Target next{step.component->name, step.to};
    if (!whyNotAgain(*step.component, action_.facet.subject, context_.facts()).empty() &&
        next.component != component_.name)
      continue;
    CO_TRY(bad_file, co_await whyNot(next));
    if (!bad_file.empty() && next.component != component_.name) continue;  // its own action says so
    if (!bad_file.empty() && progress_.staged.empty()) co_return Blocked{bad_file};
    if (!bad_file.empty()) {
      co_return co_await skipComponent(next, {bad_file, "", "then apply again", false});
    }
    co_return co_await begin(next, schedule);
  }
  co_return co_await activate();
}

/// The plan has asked this already; since then the file may have changed.
Async<std::string> Installation::whyNot(Target target) {
  const auto& component = *baseline_.find(target.component);
  if (component.file.empty())
    co_return whyNotFlashable(baseline_, component, action_.facet.subject, {});
  CO_TRY(image, imageOf(target));
  co_return co_await files_.whyNot(component, image);
}

Async<Outcome> Installation::look() {
  CO_TRY(tasks, co_await bmc_.tasks());
  if (!tasks.running.empty())
    co_return Again{kBusyPoll, "the BMC is busy with " + tasks.running.front()};
  const bool to_supply =
      std::any_of(progress_.with.begin(), progress_.with.end(),
                  [](const Target& each) { return rowOf(each.component).supply; });
  if (to_supply || rowOf(target().component).supply) {
    CO_TRY(not_yet, co_await supplyMayGo());
    if (not_yet) co_return std::move(*not_yet);
  }
  progress_.tasks_before = tasks.finished;
  co_return co_await upload();
}

/// A power supply restarts under load. One that was just flashed is given some minutes to be good
/// again.
Async<std::optional<Outcome>> Installation::supplyMayGo() {
  auto seen = co_await bmc_.sensors();
  if (!seen && seen.error().code() != ErrorCode::NotFound) co_return fail(std::move(seen.error()));
  const auto why = whyNotRedundant(seen.value_or(std::vector<bmc::SensorReading>()));
  if (why.empty()) co_return std::optional<Outcome>();
  if (clock_.steady() < stopwatch_.intent_began + kSupplyReturns)
    co_return std::optional<Outcome>(Again{kBusyPoll, nameOf(target()) + " waits: " + why});
  co_return std::optional<Outcome>(Blocked{nameOf(target()) + " is not flashed: " + why});
}

// The journal knows of the upload before the BMC does. Whatever happens to the answer, the next
// call looks first.
Async<Outcome> Installation::upload() {
  const auto what = target();
  auto declared = imageOf(what);
  if (!declared) {
    co_return co_await refused(what, std::move(declared.error()));
  }
  const auto image = *declared;
  const int tried_before = progress_.uploads_tried++;
  CO_TRY_OK(co_await record(InstallStep::Upload, WallTime{}));
  context_.progress(0, "uploading " + nameOf(what));
  bmc::FirmwareUpdate update{what.component, image.file, image.sha256};
  if (!image_url_.empty()) update.url = image_url_ + imagePath(image);
  update.inspect = inspectionOf(*baseline_.find(what.component), image);
  stopwatch_.began[what.component] = clock_.steady();
  auto task = co_await bmc_.startUpdate(std::move(update));
  if (task) {
    progress_.task = *task;
    CO_TRY_OK(co_await record(InstallStep::Follow, clock_.now()));
    co_return Again{kFirstLook, nameOf(what) + " is being installed"};
  }
  stopwatch_.began.erase(what.component);
  const Error& error = task.error();
  if (error.code() == ErrorCode::Conflict) {  // refused as a whole; but what is in its way may be
                                              // an earlier one of ours
    if (tried_before == 0) {
      progress_.current = {};
      progress_.with.clear();
      CO_TRY_OK(co_await record(InstallStep::Look));
    }
    co_return Again{kBusyPoll, error.str()};
  }
  if (error.canRetry())
    co_return Again{kBusyPoll, "the answer to the upload was lost: " + error.str()};
  co_return co_await refused(what, error);
}

/// Nothing of it was sent, or the BMC did not take it.
Async<Outcome> Installation::refused(Target what, Error error) {
  const bool corrupt = error.code() == ErrorCode::Corrupt;
  if (progress_.staged.empty()) {
    if (corrupt)
      reportFinding(
          {fmt::format("the firmware file of {} is not what the baseline declares", nameOf(what)),
           error.str(), "fetch the file again, or correct file and sha256 in the baseline"});
    progress_.current = {};
    progress_.with.clear();
    CO_TRY_OK(co_await record(InstallStep::Look));
    co_return fail(std::move(error));
  }
  co_return co_await skipComponent(
      what, {fmt::format("{} was not sent to, or not taken by {}: {}", nameOf(what), bmc_.address(),
                         error.str()),
             "",
             corrupt ? "fetch the file again, or correct file and sha256 in the baseline"
                     : "remove the cause, then apply again",
             false});
}

Async<Outcome> Installation::afterLostUpload() {
  auto list = bmc_.tasks();
  CO_TRY(tasks, co_await std::move(list));
  auto isNew = [this](const std::string& uri) {
    const auto& before = progress_.tasks_before;
    return std::find(before.begin(), before.end(), uri) == before.end();
  };
  std::string ours;
  for (const auto* uris : {&tasks.finished, &tasks.running})
    for (const auto& uri : *uris)
      if (isNew(uri)) ours = uri;
  if (!ours.empty()) {
    progress_.task = ours;
    CO_TRY_OK(co_await record(InstallStep::Follow, clock_.now()));
    co_return co_await follow();
  }
  if (progress_.since == WallTime{}) {
    CO_TRY_OK(co_await record(InstallStep::Upload, clock_.now()));
  }
  if (clock_.now() < progress_.since + kUploadGrace)  // the BMC may still be taking it in
    co_return Again{
        kBusyPoll,
        fmt::format("the BMC to list the upload of {}, whose answer was lost", nameOf(target()))};
  if (!tasks.keeps_finished) {  // it may have come and gone, or be written by now
    CO_TRY_OK(co_await record(InstallStep::Lost));
    co_return co_await lost();
  }
  if (progress_.uploads_tried >= kMaxUploadsTried) {
    co_return co_await skipComponent(
        target(),
        {fmt::format("{} uploads of {} to {} were cut off", progress_.uploads_tried,
                     target().component, bmc_.address()),
         "the BMC lists no task of them", "check the network to the BMC, then apply again", false});
  }
  co_return co_await upload();
}

// While the task runs nothing else is asked; once it has ended, the inventory decides.
Async<Outcome> Installation::follow() {
  const auto what = target();
  auto status = co_await bmc_.task(progress_.task);
  if (!status && status.error().canRetry())
    co_return Again{kStabilizePoll, "the BMC does not answer: " + status.error().str()};
  if (!status && status.error().code() != ErrorCode::NotFound)
    co_return fail(std::move(status.error()));
  if (!status) {
    CO_TRY_OK(co_await record(InstallStep::Lost,
                              progress_.since == WallTime{} ? clock_.now() : progress_.since));
    co_return Again{kFirstLook,
                    fmt::format("the BMC knows nothing of {} any more", progress_.task)};
  }
  if (!status->moved_to.empty() && status->moved_to != progress_.task) {
    progress_.task = status->moved_to;
    CO_TRY_OK(co_await record(InstallStep::Follow));
    if (progress_.task.ends_with(bmc::kOrderMark)) {
      co_return co_await follow();
    }
    co_return Again{kFirstLook, fmt::format("installing {}: {}", nameOf(what), status->message)};
  }
  if (waitsForRestart(*status)) {
    co_return co_await takenUntilRestart();
  }
  if (status->state == bmc::TaskState::Running) {
    context_.progress(status->fraction, status->message);
    const auto* component = baseline_.find(what.component);
    const auto usually =
        component
            ? flashTime(*component, measuredBy(context_.facts(), action_.facet.subject)).count()
            : 0;
    co_return Again{kTaskPoll, fmt::format("installing {}: {} (usually {} min)", nameOf(what),
                                           status->message, usually)};
  }
  auto now = co_await readInventory();
  if (!now && now.error().canRetry())
    co_return Again{kStabilizePoll, "the BMC does not answer: " + now.error().str()};
  if (!now) co_return fail(std::move(now.error()));
  // Some BMCs activate by themselves, some report a failure of what worked.
  if (status->state == bmc::TaskState::Failed && !runs(what)) {
    co_return co_await notInstalled(what, status->message);
  }
  const bool nothing_left = progress_.current.empty() && runs(what) && progress_.staged.empty();
  if (nothing_left && activation() != Activation::None)
    co_return Done{};  // else: whatever restarted itself is given its time to stabilize
  // Completed does not say that it is installed.
  if (const auto began = stopwatch_.began.extract(what.component))
    stopwatch_.took[what.component] = std::max(
        std::chrono::seconds(1),
        std::chrono::duration_cast<std::chrono::seconds>(clock_.steady() - began.mapped()));
  co_return co_await taken();
}

/// Nobody says how far it is. Nothing is sent and nothing switched until the new version shows, or
/// until such a flash would be over twice.
Async<Outcome> Installation::lost() {
  const auto what = target();
  if (!runs(what)) {
    CO_TRY(tasks, co_await bmc_.tasks());
    if (!tasks.running.empty())
      co_return Again{kBusyPoll, fmt::format("the BMC is busy with {}; {} may be a part of that",
                                             tasks.running.front(), nameOf(what))};
    if (isBeingWritten())
      co_return Again{
          kBusyPoll,
          fmt::format("the task of {} is gone, but the BMC shows that it is being written",
                      nameOf(what))};
    const auto* component = baseline_.find(what.component);
    const auto usual =
        component ? flashTime(*component, measuredBy(context_.facts(), action_.facet.subject))
                  : std::chrono::minutes(0);
    if (clock_.now() < progress_.since + kUsualTimesUnseen * usual)
      co_return Again{kBusyPoll, fmt::format("the task of {} is gone; its flash is given {} min "
                                             "from its upload on, because it may still be written",
                                             nameOf(what), (kUsualTimesUnseen * usual).count())};
  }
  co_return co_await taken();
}

Async<Outcome> Installation::taken() {
  stageCurrent();
  CO_TRY_OK(co_await record(InstallStep::Next));
  co_return co_await nextUpload();
}

}  // namespace muster::firmware
