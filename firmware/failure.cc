// SPDX-License-Identifier: Apache-2.0
#include "firmware/failure.h"

#include "base/utf8.h"

namespace muster::firmware {

namespace {

constexpr std::size_t kMaxWhyBytes = 1'500;

}  // namespace

void WaveFailure::reportFinding(const FailureReport& report) {
  wave_.context().finding({wave_.action().facet, Severity::Error, report.text, report.evidence,
                           report.what_to_do, wave_.clock().now()});
}

Continuation WaveFailure::skipComponent(Target what, FailureReport report) {
  auto& progress = wave_.progress();
  reportFinding(report);
  progress.failed =
      Failure{std::move(what),
              std::string(cutToBytes(report.text + ". " + report.what_to_do, kMaxWhyBytes)),
              report.written};
  // What came in the same package may be on the machine although this one is not.
  if (report.written)
    progress.staged.insert(progress.staged.end(), progress.with.begin(), progress.with.end());
  wave_.dropCurrent();
  return progress.staged.empty() ? Continuation::RepeatFailure : Continuation::Activate;
}

Continuation WaveFailure::failWave(FailureReport report) {
  auto& progress = wave_.progress();
  reportFinding(report);
  auto why = report.text + ". " + report.what_to_do;
  if (progress.failed) why = progress.failed->why + "; besides, " + why;
  if (!progress.failed)
    progress.failed =
        Failure{progress.staged.empty() ? wave_.own() : progress.staged.front(), {}, true};
  progress.failed->why = std::string(cutToBytes(why, kMaxWhyBytes));
  return Continuation::RepeatFailure;
}

Continuation WaveFailure::abort(const std::string& why) {
  if (wave_.progress().isWriting()) wave_.stageCurrent();
  wave_.dropCurrent();
  return failWave(
      {fmt::format("the installation of {} was broken off: {}", nameOf(wave_.own()), why), "",
       "its images may be on the machine; see that it is well, then: muster firmware retry " +
           wave_.node()});
}

Async<StepResult> WaveFailure::repeat() {
  if (wave_.progress().step != InstallStep::Over) {
    CO_TRY_OK(co_await wave_.record(InstallStep::Over));
  }
  const auto& failed = *wave_.progress().failed;
  if (failed.written)
    wave_.remember(failed.target.component, failed.target.version + " " + failed.why);
  for (const auto& target : wave_.progress().staged)
    wave_.remember(target.component, target.version + " " + failed.why);
  co_return fail(ErrorCode::Conflict, failed.why);
}

}  // namespace muster::firmware
