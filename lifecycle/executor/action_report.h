// SPDX-License-Identifier: Apache-2.0
// What is said about a running action: events, progress, findings with their evidence. Internal to
// lifecycle/.
#pragma once

#include "lifecycle/executor/lease_keeper.h"

#include <set>

namespace muster::lifecycle {

class ActionReport {
 public:
  /// Everything referred to outlives it, and is as it is at the moment of saying.
  ActionReport(const Services& services, const FactSet& facts, const Action& action,
               const Intent& intent)
      : services_(services), facts_(facts), action_(action), intent_(intent) {}

  void emit(EventKind kind, std::string text, double fraction = -1, bool stored = true);
  /// Stored once in a while.
  void progress(double fraction, std::string_view text);
  /// The first finding of an attempt replaces those of the attempts before.
  void finding(Finding finding);
  /// A finding about the action's facet, with what was expected and observed.
  void raise(Severity severity, std::string text, std::string what_to_do);
  /// Said once, however often the phase waits for it.
  void waiting(const std::string& waiting_for);
  void noteEvidence(std::string evidence) { last_evidence_ = std::move(evidence); }

  /// What the phase said last.
  const std::string& lastEvidence() const { return last_evidence_; }
  /// It has been said what is wrong with the action's facet.
  bool hasOwnFinding() const { return own_finding_; }

 private:
  const Services& services_;
  const FactSet& facts_;
  const Action& action_;
  const Intent& intent_;
  std::string last_evidence_, last_waiting_;
  std::optional<std::chrono::steady_clock::time_point> progress_stored_at_;
  std::string progress_stored_text_;
  std::set<FacetRef> findings_raised_;
  bool own_finding_ = false;
};

}  // namespace muster::lifecycle
