// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/executor/stall_watch.h"

#include "base/limits.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/json.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kLastWords =
    16;  ///< events of the node that are searched for the action's last word

std::string secondsOf(std::chrono::milliseconds duration) {
  return fmt::format("{:.0f} s", std::chrono::duration<double>(duration).count());
}

}  // namespace

Task<void> StallWatch::run() {
  while (true) {
    co_await clock_.sleep(kStallCheckInterval);
    if (auto looked = check(); !looked)
      logWarning("lifecycle", "whether an action stalls could not be seen: {}",
                 looked.error().str());
  }
}

Result<void> StallWatch::check() {
  TRY(open, store_.openIntents());
  std::set<std::string> still;
  for (const auto& intent : open) {
    if (reported_.contains(intent.id)) {
      still.insert(intent.id);
      continue;
    }
    TRY(estimate, estimateFor(intent.action));
    if (!estimate.isLate(clock_.now() - intent.opened_at, slownessOf(clock_))) continue;
    still.insert(intent.id);
    TRY_OK(raiseFinding(intent, estimate));
  }
  reported_ = std::move(still);  // bounded by what is open
  return {};
}

Result<DurationEstimate> StallWatch::estimateFor(const Action& action) {
  TRY(estimates, durations_.of(cluster_, store_, action.facet.subject, clock_.steady()));
  return estimates->of(action);
}

Result<void> StallWatch::raiseFinding(const Intent& intent, const DurationEstimate& estimate) {
  const auto& action = intent.action;
  const auto taken = clock_.now() - intent.opened_at;
  std::string last = "no evidence yet";
  TRY(events, store_.lastEvents(kLastWords, &action.facet.subject));
  for (const auto& event : events)
    if (event.action_id == action.id && event.kind != EventKind::Note && !event.text.empty())
      last = event.text;  // a note may be this one, of a process before
  const auto text = fmt::format("{} is under way for {}; it takes {}; last: {}", action.id,
                                secondsOf(taken), estimate.text(), last);
  Event event{0,
              clock_.now(),
              EventKind::Note,
              action.facet.subject,
              action.id,
              text + "; " + std::string(lateAdvice(action))};
  TRY(sequence, store_.addEvent(event));
  event.sequence = sequence;
  reported_.insert(intent.id);  // once, whatever becomes of the finding
  if (sink_) sink_(event);
  if (action.id.ends_with(kDrainSuffix))
    return {};  // jobs may take their time: no finding about the node
  nlohmann::json evidence = {
      {"expected_seconds", std::chrono::duration<double>(estimate.expected).count()},
      {"samples", estimate.samples},
      {"observed_seconds", std::chrono::duration<double>(taken).count()},
      {"last_evidence", last},
      {"intent", intent.id},
      {"operation", intent.operation}};
  const auto found = store_.addFinding(
      {action.facet, Severity::Warning, text,
       evidenceWithConsole(std::move(evidence), console_, action.facet.subject, intent.opened_at),
       std::string(lateAdvice(action)), clock_.now(), engineSource(action.phase)});
  // Of another controller's action its own watch makes the finding.
  return found || found.error().code() == ErrorCode::Conflict ? Result<void>() : found;
}

}  // namespace muster::lifecycle
