// SPDX-License-Identifier: Apache-2.0
// How an action ends: what is written down, and what is said.
#include "lifecycle/executor/action_run.h"

#include "lifecycle/model/json.h"

namespace muster::lifecycle {
namespace {

std::string seconds(std::chrono::steady_clock::duration duration) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

}  // namespace

Task<ActionResult> ActionRun::done(std::string how) {
  const auto value = facts_.value(action_.facet.subject, action_.facet.facet).value_or(action_.to);
  const auto words = fmt::format("{} is '{}' after {}{}", action_.facet.facet.str(), value,
                                 seconds(services_.clock.steady() - started_), how);
  auto closing = close(IntentState::Done, words,
                       !isDrain());  // the last drain says nothing about why a join failed
  if (auto trouble = co_await std::move(closing); !trouble.empty())
    co_return ActionResult{ActionStatus::Failed, trouble};
  emit(EventKind::ActionDone, words);
  co_return ActionResult{ActionStatus::Done, words};
}

void ActionRun::raise(Severity severity, std::string text, std::string what_to_do) {
  nlohmann::json evidence = {
      {"expected", action_.to},
      {"observed", facts_.value(action_.facet.subject, action_.facet.facet).value_or("")},
      {"last_evidence", last_evidence_},
      {"intent", intent_.id},
      {"operation", intent_.operation}};
  const auto since = intent_.opened_at == WallTime{} ? services_.clock.now() : intent_.opened_at;
  auto words =
      evidenceWithConsole(std::move(evidence), services_.console, action_.facet.subject, since);
  finding(Finding{
      action_.facet, severity, std::move(text), std::move(words), std::move(what_to_do), {}});
}

Task<ActionResult> ActionRun::failed(Error error) {
  const auto text = error.str();
  const auto& subject = action_.facet.subject.str();
  const bool verdict = error.code() == ErrorCode::Timeout || error.code() == ErrorCode::Conflict ||
                       error.code() == ErrorCode::NotFound;
  if (!own_finding_ || verdict)
    raise(
        Severity::Error, text,
        error.canRetry()
            ? fmt::format(
                  "see what it waited for with `muster events {}`, then `muster apply` tries again",
                  subject)
            : fmt::format("remove the cause, then `muster plan` and `muster apply` again; `muster "
                          "why {}` shows the evidence",
                          subject));
  co_await restoreUnwipedFacts();
  const auto trouble = co_await close(IntentState::Failed, text);
  emit(EventKind::ActionFailed, text);
  co_return ActionResult{ActionStatus::Failed, trouble.empty() ? text : text + "; " + trouble};
}

/// Nothing is concluded from what could not be stored: a write to a disk that had ended well would
/// be done again. The intent stays open, and the next run looks first.
Task<ActionResult> ActionRun::keepOpen(Error error) {
  const auto text = error.str() + "; how it has ended is not known: the next run looks first";
  raise(Severity::Error, text, "let the store be written again, then `muster apply`");
  co_await restoreUnwipedFacts();
  emit(EventKind::ActionFailed, text);
  co_return ActionResult{ActionStatus::Failed, text};
}

Task<ActionResult> ActionRun::blocked(std::string why) {
  if (!own_finding_)
    raise(Severity::Warning, why, "remove what blocks it, then `muster apply` again");
  co_await restoreUnwipedFacts();
  const auto trouble = co_await close(IntentState::Blocked, why);
  emit(EventKind::ActionBlocked, why);
  co_return ActionResult{ActionStatus::Blocked, trouble.empty() ? why : why + "; " + trouble};
}

}  // namespace muster::lifecycle
