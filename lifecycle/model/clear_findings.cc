// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/model/clear_findings.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

/// What to do instead, where a finding stands for a state that would stay; empty: it may be
/// cleared.
std::string wayOfItsOwn(const Finding& finding) {
  const auto subject = finding.facet.subject.str();
  if (finding.source == kQuarantineSource)
    return fmt::format("it ends with the quarantine: `muster quarantine remove {} --reason TEXT`",
                       subject);
  if (finding.source != kMonitorSource) return "";
  if (finding.facet.subject.isCluster())
    return "the circuit breaker is open: `muster monitor --acknowledge --reason TEXT`";
  return fmt::format(
      "`muster monitor` ends it when what it watches is well again; `muster why {}` says what that "
      "is",
      subject);
}

Result<std::vector<Finding>> clearable(Store& store, const Subject& subject, const FacetName& facet,
                                       const std::vector<Intent>& under_way) {
  TRY(all, store.findings(&subject));
  std::erase_if(all, [&facet](const Finding& finding) { return finding.facet.facet != facet; });
  if (all.empty())
    return fail(
        ErrorCode::NotFound,
        fmt::format(
            "{} has no finding of facet {}; `muster findings {}` lists them; nothing was cleared",
            subject.str(), facet.str(), subject.str()));
  for (const auto& finding : all)
    if (const auto way = wayOfItsOwn(finding); !way.empty())
      return fail(ErrorCode::Denied,
                  fmt::format("the finding {} was raised by {}: {}; nothing was cleared",
                              finding.facet.str(), finding.source, way));
  const FacetRef ref{subject, facet};
  if (std::any_of(under_way.begin(), under_way.end(),
                  [&ref](const Intent& intent) { return intent.action.facet == ref; }))
    return fail(
        ErrorCode::Denied,
        fmt::format(
            "an action on {} is under way and will say itself what it found; nothing was cleared",
            ref.str()));
  return all;
}

}  // namespace

Result<std::vector<Finding>> clearFindings(Store& store, const ClearFindings& what, WallTime at) {
  if (what.reason.empty())
    return fail(ErrorCode::InvalidInput, "a finding is cleared for a reason; say --reason TEXT");
  TRY(under_way, store.openIntents());
  std::vector<Finding> all;
  for (const auto& subject : what.subjects) {
    TRY(mine, clearable(store, subject, what.facet, under_way));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  for (const auto& finding : all) {  // said first: what was cleared and not said would be lost
    const auto words = fmt::format("{} clears the finding '{}' of {}: {}", what.by, finding.text,
                                   what.facet.str(), what.reason);
    TRY(sequence, store.addEvent({0, at, EventKind::Note, finding.facet.subject, "", words}));
    (void)sequence;
    TRY_OK(store.clearFindingsOf(finding.facet, finding.source));
  }
  return all;
}

}  // namespace muster::lifecycle
