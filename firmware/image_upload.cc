// SPDX-License-Identifier: Apache-2.0
#include "firmware/image_upload.h"

#include "firmware/activation_policy.h"
#include "firmware/poll_intervals.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Outcome;

namespace {

constexpr int kMaxUploadsTried = 8;  ///< attempts of which none is known to have arrived; a
                                     ///< controller that is killed cuts one off too
constexpr auto kUploadGrace =
    2min;  ///< for a slow BMC to list an upload whose answer was lost; looked at every kBusyPoll
constexpr auto kSupplyReturns =
    5min;  ///< until a power supply that restarted shows that it is well

}  // namespace

Async<StepResult> ImageUpload::start() {
  CO_TRY(tasks, co_await wave_.bmc().tasks());
  if (!tasks.running.empty())
    co_return Again{kBusyPoll, "the BMC is busy with " + tasks.running.front()};
  const bool to_supply =
      std::any_of(wave_.progress().with.begin(), wave_.progress().with.end(),
                  [](const Target& each) { return rowOf(each.component).supply; });
  if (to_supply || rowOf(wave_.target().component).supply) {
    CO_TRY(not_yet, co_await supplyMayGo());
    if (not_yet) co_return std::move(*not_yet);
  }
  wave_.progress().tasks_before = tasks.finished;
  co_return co_await send();
}

/// A power supply restarts under load. One that was just flashed is given some minutes to be good
/// again.
Async<std::optional<Outcome>> ImageUpload::supplyMayGo() {
  auto seen = co_await wave_.bmc().sensors();
  if (!seen && seen.error().code() != ErrorCode::NotFound) co_return fail(std::move(seen.error()));
  const auto why = whyNotRedundant(seen.value_or(std::vector<bmc::SensorReading>()));
  if (why.empty()) co_return std::optional<Outcome>();
  if (wave_.clock().steady() < wave_.stopwatch().intent_began + kSupplyReturns)
    co_return std::optional<Outcome>(Again{kBusyPoll, nameOf(wave_.target()) + " waits: " + why});
  co_return std::optional<Outcome>(Blocked{nameOf(wave_.target()) + " is not flashed: " + why});
}

// The journal knows of the upload before the BMC does. Whatever happens to the answer, the next
// call looks first.
Async<StepResult> ImageUpload::send() {
  auto& progress = wave_.progress();
  const auto what = wave_.target();
  auto declared = wave_.imageOf(what);
  if (!declared) {
    co_return co_await refused(what, std::move(declared.error()));
  }
  const auto image = *declared;
  const int tried_before = progress.uploads_tried++;
  CO_TRY_OK(co_await wave_.record(InstallStep::Upload, WallTime{}));
  wave_.context().progress(0, "uploading " + nameOf(what));
  bmc::FirmwareUpdate update{what.component, image.file, image.sha256};
  if (!wave_.imageUrl().empty()) update.url = wave_.imageUrl() + imagePath(image);
  update.inspect = inspectionOf(*wave_.baseline().find(what.component), image);
  wave_.stopwatch().began[what.component] = wave_.clock().steady();
  auto task = co_await wave_.bmc().startUpdate(std::move(update));
  if (task) {
    progress.task = *task;
    CO_TRY_OK(co_await wave_.record(InstallStep::Follow, wave_.clock().now()));
    co_return Again{kFirstLook, nameOf(what) + " is being installed"};
  }
  wave_.stopwatch().began.erase(what.component);
  const Error& error = task.error();
  if (error.code() == ErrorCode::Conflict) {  // refused as a whole; but what is in its way may be
                                              // an earlier one of ours
    if (tried_before == 0) {
      wave_.dropCurrent();
      CO_TRY_OK(co_await wave_.record(InstallStep::Look));
    }
    co_return Again{kBusyPoll, error.str()};
  }
  if (error.canRetry())
    co_return Again{kBusyPoll, "the answer to the upload was lost: " + error.str()};
  co_return co_await refused(what, error);
}

/// Nothing of it was sent, or the BMC did not take it.
Async<StepResult> ImageUpload::refused(Target what, Error error) {
  const bool corrupt = error.code() == ErrorCode::Corrupt;
  if (wave_.progress().staged.empty()) {
    if (corrupt)
      failure_.reportFinding(
          {fmt::format("the firmware file of {} is not what the baseline declares", nameOf(what)),
           error.str(), "fetch the file again, or correct file and sha256 in the baseline"});
    wave_.dropCurrent();
    CO_TRY_OK(co_await wave_.record(InstallStep::Look));
    co_return fail(std::move(error));
  }
  co_return failure_.skipComponent(
      what, {fmt::format("{} was not sent to, or not taken by {}: {}", nameOf(what),
                         wave_.bmc().address(), error.str()),
             "",
             corrupt ? "fetch the file again, or correct file and sha256 in the baseline"
                     : "remove the cause, then apply again",
             false});
}

Async<StepResult> ImageUpload::findLost() {
  auto& progress = wave_.progress();
  CO_TRY(tasks, co_await wave_.bmc().tasks());
  auto isNew = [&progress](const std::string& uri) {
    const auto& before = progress.tasks_before;
    return std::find(before.begin(), before.end(), uri) == before.end();
  };
  std::string ours;
  for (const auto* uris : {&tasks.finished, &tasks.running})
    for (const auto& uri : *uris)
      if (isNew(uri)) ours = uri;
  if (!ours.empty()) {
    progress.task = ours;
    CO_TRY_OK(co_await wave_.record(InstallStep::Follow, wave_.clock().now()));
    co_return Continuation::FollowTask;
  }
  if (progress.since == WallTime{}) {
    CO_TRY_OK(co_await wave_.record(InstallStep::Upload, wave_.clock().now()));
  }
  if (wave_.clock().now() < progress.since + kUploadGrace)  // the BMC may still be taking it in
    co_return Again{kBusyPoll,
                    fmt::format("the BMC to list the upload of {}, whose answer was lost",
                                nameOf(wave_.target()))};
  if (!tasks.keeps_finished) {  // it may have come and gone, or be written by now
    CO_TRY_OK(co_await wave_.record(InstallStep::Lost));
    co_return Continuation::AwaitUnseen;
  }
  if (progress.uploads_tried >= kMaxUploadsTried) {
    co_return failure_.skipComponent(
        wave_.target(),
        {fmt::format("{} uploads of {} to {} were cut off", progress.uploads_tried,
                     wave_.target().component, wave_.bmc().address()),
         "the BMC lists no task of them", "check the network to the BMC, then apply again", false});
  }
  co_return co_await send();
}

}  // namespace muster::firmware
