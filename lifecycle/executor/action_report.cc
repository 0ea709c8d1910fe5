// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/executor/action_report.h"

#include "lifecycle/model/json.h"

#include <algorithm>

namespace muster::lifecycle {

void ActionReport::emit(EventKind kind, std::string text, double fraction, bool stored) {
  services_.emit(Event{0, {}, kind, action_.facet.subject, action_.id, std::move(text), fraction},
                 stored);
}

void ActionReport::progress(double fraction, std::string_view text) {
  const auto now = services_.clock.steady();
  const auto interval =
      text == progress_stored_text_ ? kSameProgressStoreInterval : kProgressStoreInterval;
  const bool stored = !progress_stored_at_ || now - *progress_stored_at_ >= interval;
  if (stored) {
    progress_stored_at_ = now;
    progress_stored_text_ = text;
  }
  if (!text.empty()) last_evidence_ = std::string(text);
  emit(EventKind::ActionProgress, std::string(text), std::clamp(fraction, 0.0, 1.0), stored);
}

void ActionReport::finding(Finding finding) {
  if (finding.facet.facet.empty()) finding.facet = action_.facet;
  if (finding.at == WallTime{}) finding.at = services_.clock.now();
  finding.source = engineSource(action_.phase);
  if (finding.facet == action_.facet) own_finding_ = true;
  const bool first = findings_raised_.insert(finding.facet).second;
  auto keep = [finding, first](Store& store) -> Result<void> {
    if (first) TRY_OK(store.clearFindings(finding.facet));
    return store.addFinding(finding);
  };
  auto tell = [&services = services_, subject = action_.facet.subject,
               id = action_.id](Result<void> kept) {
    if (!kept)
      services.emit(Event{0,
                          {},
                          EventKind::Note,
                          subject,
                          id,
                          "a finding could not be stored: " + kept.error().str(),
                          -1},
                    false);
  };
  services_.journal->post<void>(keep, tell);
  emit(EventKind::FindingRaised, finding.text);
}

void ActionReport::raise(Severity severity, std::string text, std::string what_to_do) {
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

void ActionReport::waiting(const std::string& waiting_for) {
  if (waiting_for.empty()) return;
  last_evidence_ = waiting_for;
  if (std::exchange(last_waiting_, waiting_for) != waiting_for)
    emit(EventKind::ActionWaiting, waiting_for);
}

}  // namespace muster::lifecycle
