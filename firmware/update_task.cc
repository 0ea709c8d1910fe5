// SPDX-License-Identifier: Apache-2.0
#include "firmware/update_task.h"

#include "firmware/poll_intervals.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Done;

namespace {

constexpr auto kTaskPoll = 2s;
constexpr int kUsualTimesUnseen = 2;  ///< so many usual times a flash has that nobody can follow
constexpr auto kTaskStarts = 30s;   ///< a NIC's update that has not begun so long after its upload
                                    ///< begins at the restart (Ironic's time)
constexpr auto kSeenStarting = 4s;  ///< … and says so at several looks

}  // namespace

Async<StepResult> UpdateTask::follow() {
  auto& progress = wave_.progress();
  const auto what = wave_.target();
  auto status = co_await wave_.bmc().task(progress.task);
  if (!status && status.error().canRetry())
    co_return Again{kStabilizePoll, "the BMC does not answer: " + status.error().str()};
  if (!status && status.error().code() != ErrorCode::NotFound)
    co_return fail(std::move(status.error()));
  if (!status) {
    CO_TRY_OK(co_await wave_.record(
        InstallStep::Lost, progress.since == WallTime{} ? wave_.clock().now() : progress.since));
    co_return Again{kFirstLook, fmt::format("the BMC knows nothing of {} any more", progress.task)};
  }
  if (!status->moved_to.empty() && status->moved_to != progress.task) {
    progress.task = status->moved_to;
    CO_TRY_OK(co_await wave_.record(InstallStep::Follow));
    if (progress.task.ends_with(bmc::kOrderMark)) {
      co_return Continuation::FollowTask;
    }
    co_return Again{kFirstLook, fmt::format("installing {}: {}", nameOf(what), status->message)};
  }
  if (waitsForRestart(*status)) {
    co_return co_await takenUntilRestart();
  }
  if (status->state == bmc::TaskState::Running) {
    wave_.context().progress(status->fraction, status->message);
    co_return Again{kTaskPoll, fmt::format("installing {}: {} (usually {} min)", nameOf(what),
                                           status->message, usualFlashTime(what).count())};
  }
  co_return co_await ended(what, *status);
}

Async<StepResult> UpdateTask::ended(Target what, bmc::TaskStatus status) {
  auto now = co_await wave_.readInventory();
  if (!now && now.error().canRetry())
    co_return Again{kStabilizePoll, "the BMC does not answer: " + now.error().str()};
  if (!now) co_return fail(std::move(now.error()));
  // Some BMCs activate by themselves, some report a failure of what worked.
  if (status.state == bmc::TaskState::Failed && !wave_.runs(what)) {
    co_return co_await notInstalled(what, std::move(status));
  }
  const bool nothing_left =
      wave_.progress().current.empty() && wave_.runs(what) && wave_.progress().staged.empty();
  if (nothing_left && wave_.activation() != Activation::None)
    co_return Done{};  // else: whatever restarted itself is given its time to stabilize
  // Completed does not say that it is installed.
  if (const auto began = wave_.stopwatch().began.extract(what.component))
    wave_.stopwatch().took[what.component] = std::max(
        std::chrono::seconds(1),
        std::chrono::duration_cast<std::chrono::seconds>(wave_.clock().steady() - began.mapped()));
  co_return co_await taken();
}

Async<StepResult> UpdateTask::awaitUnseen() {
  const auto what = wave_.target();
  if (!wave_.runs(what)) {
    CO_TRY(tasks, co_await wave_.bmc().tasks());
    if (!tasks.running.empty())
      co_return Again{kBusyPoll, fmt::format("the BMC is busy with {}; {} may be a part of that",
                                             tasks.running.front(), nameOf(what))};
    if (wave_.isBeingWritten())
      co_return Again{
          kBusyPoll,
          fmt::format("the task of {} is gone, but the BMC shows that it is being written",
                      nameOf(what))};
    const auto usual = usualFlashTime(what);
    if (wave_.clock().now() < wave_.progress().since + kUsualTimesUnseen * usual)
      co_return Again{kBusyPoll, fmt::format("the task of {} is gone; its flash is given {} min "
                                             "from its upload on, because it may still be written",
                                             nameOf(what), (kUsualTimesUnseen * usual).count())};
  }
  co_return co_await taken();
}

std::chrono::minutes UpdateTask::usualFlashTime(const Target& what) const {
  const auto* component = wave_.baseline().find(what.component);
  return component ? flashTime(*component, measuredBy(wave_.context().facts(), wave_.subject()))
                   : std::chrono::minutes(0);
}

Async<StepResult> UpdateTask::taken() {
  wave_.stageCurrent();
  CO_TRY_OK(co_await wave_.record(InstallStep::Next));
  co_return Continuation::ChooseUpload;
}

/// Its image is taken in and waits: as a task, and for some vendors under a second name. Nothing
/// else can be sent meanwhile, so the wave goes on to its restart.
Async<StepResult> UpdateTask::takenUntilRestart() {
  CO_TRY(tasks, co_await wave_.bmc().tasks());
  for (const auto& uri : tasks.running) {
    const auto status = co_await wave_.bmc().task(uri);
    if (status && bmc::isStarting(*status)) wave_.progress().waits.push_back(uri);
  }
  if (wave_.progress().waits.empty())
    co_return Again{kStartPoll, "the BMC to list what waits for the restart"};
  co_return co_await taken();
}

bool UpdateTask::waitsForRestart(const bmc::TaskStatus& status) {
  if (!rowOf(wave_.target().component).starts_at_restart || !bmc::isStarting(status)) {
    wave_.stopwatch().starting_since.reset();
    return false;
  }
  if (!wave_.stopwatch().starting_since) wave_.stopwatch().starting_since = wave_.clock().steady();
  return wave_.clock().steady() - *wave_.stopwatch().starting_since >= kSeenStarting &&
         wave_.clock().now() >= wave_.progress().since + kTaskStarts;
}

/// A BMC that fetches for itself gets nothing of a file that has been changed since it was told
/// where the file lies.
Async<StepResult> UpdateTask::notInstalled(Target what, bmc::TaskStatus status) {
  FailureReport report{
      fmt::format("{} did not install {} {}{}{}", wave_.bmc().address(), what.component,
                  what.version, status.message.empty() ? "" : ": ", status.message),
      status.message,
      fmt::format("{}; the old version is still active. muster does not flash it again by itself",
                  status.resolution.empty() ? "read the BMC's own log"
                                            : "the BMC says: " + status.resolution)};
  if (const auto image = wave_.imageOf(what); image && !wave_.imageUrl().empty()) {
    if (const auto altered =
            co_await wave_.files().whyNotNow(*wave_.baseline().find(what.component), *image);
        altered && !altered->empty())
      report.text += "; its file has changed meanwhile: " + *altered;
  }
  co_return failure_.skipComponent(std::move(what), std::move(report));
}

}  // namespace muster::firmware
