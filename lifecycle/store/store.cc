// SPDX-License-Identifier: Apache-2.0
// The words of the store.
#include "lifecycle/store/store.h"

#include <array>

namespace muster::lifecycle {
namespace {

template <class Enum, std::size_t N>
using Words = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Words<IntentState, 5> kIntentStates{{{IntentState::Open, "open"},
                                               {IntentState::Done, "done"},
                                               {IntentState::Failed, "failed"},
                                               {IntentState::Abandoned, "abandoned"},
                                               {IntentState::Blocked, "blocked"}}};

constexpr Words<EventKind, 11> kEventKinds{{{EventKind::PlanStarted, "plan-started"},
                                            {EventKind::PlanFinished, "plan-finished"},
                                            {EventKind::ActionStarted, "action-started"},
                                            {EventKind::ActionProgress, "action-progress"},
                                            {EventKind::ActionWaiting, "action-waiting"},
                                            {EventKind::ActionDone, "action-done"},
                                            {EventKind::ActionFailed, "action-failed"},
                                            {EventKind::ActionBlocked, "action-blocked"},
                                            {EventKind::Observed, "observed"},
                                            {EventKind::FindingRaised, "finding"},
                                            {EventKind::Note, "note"}}};

template <class Enum, std::size_t N>
std::string_view wordOf(const Words<Enum, N>& words, Enum value) {
  for (const auto& [candidate, word] : words)
    if (candidate == value) return word;
  return "?";
}

template <class Enum, std::size_t N>
std::optional<Enum> valueOf(const Words<Enum, N>& words, std::string_view text) {
  for (const auto& [candidate, word] : words)
    if (word == text) return candidate;
  return std::nullopt;
}

}  // namespace

std::string_view toString(IntentState state) { return wordOf(kIntentStates, state); }
std::optional<IntentState> parseIntentState(std::string_view text) {
  return valueOf(kIntentStates, text);
}
std::string_view toString(EventKind kind) { return wordOf(kEventKinds, kind); }
std::optional<EventKind> parseEventKind(std::string_view text) {
  return valueOf(kEventKinds, text);
}

}  // namespace muster::lifecycle
