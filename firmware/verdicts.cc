// How an installation ends badly: said, journaled, remembered.
#include "firmware/installation.h"

namespace muster::firmware {

using lifecycle::Outcome;

namespace {

constexpr std::size_t kMaxWhyBytes = 1'500;

}  // namespace

void Installation::say(const Verdict& verdict) {
  context_.finding({action_.facet, Severity::Error, verdict.text, verdict.evidence, verdict.what_to_do, clock_.now()});
}

/// What was staged beside it is switched on first: every part of a wave is allowed without the rest, and whoever plans again shall find
/// it running instead of staging it once more.
Async<Outcome> Installation::giveUp(Target what, Verdict verdict) {
  say(verdict);
  progress_.failed = Failure{std::move(what), (verdict.text + ". " + verdict.what_to_do).substr(0, kMaxWhyBytes), verdict.written};
  progress_.current = {};
  auto next = progress_.staged.empty() ? over() : activate();
  co_return co_await std::move(next);
}

/// What is staged now does not come to run.
Async<Outcome> Installation::endBadly(Verdict verdict) {
  say(verdict);
  auto why = verdict.text + ". " + verdict.what_to_do;
  if (progress_.failed) why = progress_.failed->why + "; besides, " + why;
  if (!progress_.failed) progress_.failed = Failure{progress_.staged.empty() ? Target{component_.name, component_.version} : progress_.staged.front(), {}, true};
  progress_.failed->why = why.substr(0, kMaxWhyBytes);
  auto end = over();
  co_return co_await std::move(end);
}

/// The journal knows the end before anybody is told, so that a process that dies here says the same again.
Async<Outcome> Installation::over() {
  if (progress_.step != Step::Over) {
    auto written = record(Step::Over);
    CO_TRY_OK(co_await std::move(written));
  }
  const auto& failed = *progress_.failed;
  if (failed.written) remember_(failed.target.component, failed.target.version + " " + failed.why);
  for (const auto& target : progress_.staged) remember_(target.component, target.version + " " + failed.why);
  co_return fail(ErrorCode::Conflict, failed.why);
}

Async<Outcome> Installation::breakOff(std::string why) {
  if (progress_.isWriting()) progress_.staged.push_back(target());
  progress_.current = {};
  auto end = endBadly({fmt::format("the installation of {} was broken off: {}", component_.name + " " + component_.version, why), "",
                       "its images may be on the machine; see that it is well, then: muster firmware retry " + node()});
  co_return co_await std::move(end);
}

}  // namespace muster::firmware
