// SPDX-License-Identifier: Apache-2.0
// How an installation ends badly: said, journaled, remembered.
#include "base/utf8.h"
#include "firmware/installation.h"

namespace muster::firmware {

using lifecycle::Outcome;

namespace {

constexpr std::size_t kMaxWhyBytes = 1'500;

}  // namespace

void Installation::reportFinding(const FailureReport& report) {
  context_.finding({action_.facet, Severity::Error, report.text, report.evidence, report.what_to_do,
                    clock_.now()});
}

/// What was staged beside it is switched on first: every part of a wave is allowed without the
/// rest, and whoever plans again shall find it running instead of staging it once more.
Async<Outcome> Installation::skipComponent(Target what, FailureReport report) {
  reportFinding(report);
  progress_.failed =
      Failure{std::move(what),
              std::string(cutToBytes(report.text + ". " + report.what_to_do, kMaxWhyBytes)),
              report.written};
  // What came in the same package may be on the machine although this one is not.
  if (report.written)
    progress_.staged.insert(progress_.staged.end(), progress_.with.begin(), progress_.with.end());
  progress_.with.clear();
  progress_.current = {};
  co_return co_await (progress_.staged.empty() ? repeatFailure() : activate());
}

/// What is staged now does not come to run.
Async<Outcome> Installation::failWave(FailureReport report) {
  reportFinding(report);
  auto why = report.text + ". " + report.what_to_do;
  if (progress_.failed) why = progress_.failed->why + "; besides, " + why;
  if (!progress_.failed)
    progress_.failed =
        Failure{progress_.staged.empty() ? Target{component_.name, component_.version}
                                         : progress_.staged.front(),
                {},
                true};
  progress_.failed->why = std::string(cutToBytes(why, kMaxWhyBytes));
  co_return co_await repeatFailure();
}

/// The journal knows the end before anybody is told, so that a process that dies here says the same
/// again.
Async<Outcome> Installation::repeatFailure() {
  if (progress_.step != InstallStep::Over) {
    CO_TRY_OK(co_await record(InstallStep::Over));
  }
  const auto& failed = *progress_.failed;
  if (failed.written) remember_(failed.target.component, failed.target.version + " " + failed.why);
  for (const auto& target : progress_.staged)
    remember_(target.component, target.version + " " + failed.why);
  co_return fail(ErrorCode::Conflict, failed.why);
}

Async<Outcome> Installation::abortWith(std::string why) {
  if (progress_.isWriting()) stageCurrent();
  progress_.current = {};
  progress_.with.clear();
  co_return co_await failWave(
      {fmt::format("the installation of {} was broken off: {}",
                   component_.name + " " + component_.version, why),
       "",
       "its images may be on the machine; see that it is well, then: muster firmware retry " +
           node()});
}

/// A BMC that fetches for itself gets nothing of a file that has been changed since it was told
/// where the file lies.
Async<Outcome> Installation::notInstalled(Target what, std::string words) {
  FailureReport report{
      fmt::format("{} did not install {} {}", bmc_.address(), what.component, what.version),
      std::move(words),
      "read the BMC's own log; the old version is still active. muster does not flash it again by "
      "itself"};
  if (const auto image = imageOf(what); image && !image_url_.empty()) {
    if (const auto altered = co_await files_.whyNotNow(*baseline_.find(what.component), *image);
        altered && !altered->empty())
      report.text += "; its file has changed meanwhile: " + *altered;
  }
  co_return co_await skipComponent(std::move(what), std::move(report));
}

}  // namespace muster::firmware
