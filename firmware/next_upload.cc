// SPDX-License-Identifier: Apache-2.0
#include "firmware/next_upload.h"

#include "firmware/poll_intervals.h"
#include "inventory/model/in_band.h"

#include <algorithm>

namespace muster::firmware {

using lifecycle::Again;
using lifecycle::Blocked;

Async<StepResult> NextUpload::choose() {
  auto& progress = wave_.progress();
  if (progress.failed || !progress.waits.empty() || !progress.restarted.empty()) {
    co_return Continuation::Activate;
  }
  // A plan blocks it already; keep's recovery tries the action again without one.
  if (auto again = whyNotAgain(wave_.component(), wave_.subject(), wave_.context().facts());
      !again.empty() && progress.staged.empty())
    co_return Blocked{std::move(again)};
  if (const auto problem = wave_.trouble(); problem && problem->canRetry())
    co_return Again{kBusyPoll, problem->str()};
  CO_TRY(why_not, co_await whyNot(wave_.own()));
  if (!why_not.empty() && progress.staged.empty()) co_return Blocked{why_not};
  const Versions running = wave_.versions();
  const auto schedule = solve(wave_.baseline(), running);
  if (const auto* undone = schedule.undoneOf(wave_.component().name);
      undone && progress.staged.empty())
    co_return Blocked{fmt::format("{} cannot be installed: {}", nameOf(wave_.own()), undone->why)};
  auto isStaged = [&progress](const std::string& name) {
    return std::any_of(progress.staged.begin(), progress.staged.end(),
                       [&](const Target& each) { return each.component == name; });
  };
  const auto* wave = nextWaveFor(wave_.component().name, schedule, wave_.baseline(), running);
  const auto steps = wave ? wave->steps : std::vector<UpdateStep>();
  const bool same_wave = progress.staged.empty() ||
                         std::any_of(steps.begin(), steps.end(), [&](const UpdateStep& step) {
                           return isStaged(step.component->name);
                         });
  for (const auto& step : steps) {
    if (!same_wave || isStaged(step.component->name)) continue;
    const Target next{step.component->name, step.to};
    if (!whyNotAgain(*step.component, wave_.subject(), wave_.context().facts()).empty() &&
        next.component != wave_.component().name)
      continue;
    CO_TRY(bad_file, co_await whyNot(next));
    if (!bad_file.empty() && next.component != wave_.component().name)
      continue;  // its own action says so
    if (!bad_file.empty() && progress.staged.empty()) co_return Blocked{bad_file};
    if (!bad_file.empty()) {
      co_return failure_.skipComponent(next, {bad_file, "", "then apply again", false});
    }
    co_return co_await begin(next, schedule);
  }
  co_return Continuation::Activate;
}

/// The plan has asked this already; since then the file may have changed.
Async<std::string> NextUpload::whyNot(Target target) {
  const auto& component = *wave_.baseline().find(target.component);
  if (component.file.empty())
    co_return whyNotFlashable(wave_.baseline(), component, wave_.subject(), {});
  if (const auto* item = wave_.find(target.component);
      item && item->updateable == false && !inventory::isInBand(component))
    co_return whyFixed(component);
  CO_TRY(image, wave_.imageOf(target));
  co_return co_await wave_.files().whyNot(component, image);
}

Async<StepResult> NextUpload::begin(Target next, Schedule schedule) {
  auto& progress = wave_.progress();
  CO_TRY(co_updated, co_await bundled_.coUpdatedWith(next, std::move(schedule)));
  if (!co_updated.why_not.empty()) {
    const auto text = fmt::format("{} is not sent: {}", nameOf(next), co_updated.why_not);
    if (progress.staged.empty()) co_return Blocked{text};
    co_return Continuation::Activate;  // what is staged may be what it needs
  }
  progress.current = next == wave_.own() ? Target{} : next;
  progress.with = std::move(co_updated.others);
  progress.uploads_tried = 0;
  co_return Continuation::Upload;
}

}  // namespace muster::firmware
