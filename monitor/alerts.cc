// SPDX-License-Identifier: Apache-2.0
#include "monitor/alerts.h"

#include "base/log.h"
#include "lifecycle/model/quarantine.h"
#include "monitor/agent_liveness.h"
#include "monitor/health_phase.h"

namespace muster::monitor {
namespace {

using namespace lifecycle;

constexpr std::string_view kCertificateFacet = "certificate", kValid = "valid:";
const FacetName kSystemFacet(std::string(kHealthPrefix) + "system"), kSilenceFacet("agent-silent");

}  // namespace

/// Says what is wrong with a node once, with its evidence; again only when it is something else.
Result<void> AlertPublisher::raise(const Decision& decision) {
  for (const auto* list : {&decision.drain, &decision.suppressed})
    for (const auto& exclusion : *list) {
      if (exclusion.facet.facet.str() == kQuarantineFacet) continue;  // its own list has said it
      auto [known, is_new] = raised_.try_emplace(exclusion.facet, exclusion.reason);
      if (!is_new && known->second == exclusion.reason) continue;
      known->second = exclusion.reason;
      auto cleared = store_.clearFindings(exclusion.facet);
      const auto severity =
          exclusion.facet.facet.str() == kCertificateFacet ? Severity::Warning : Severity::Error;
      const Finding finding{
          exclusion.facet,      severity,     exclusion.reason, exclusion.evidence,
          exclusion.what_to_do, clock_.now(), kMonitorSource};
      auto raised = cleared ? store_.addFinding(finding) : cleared;
      if (raised) continue;
      raised_.erase(exclusion.facet);  // another controller works on the node: said when it has let
                                       // go; the others are not kept waiting
      if (raised.error().code() != ErrorCode::Conflict) return raised;
    }
  return {};
}

/// A health fact that is well again ends its findings, whoever raised them; certificates' end when
/// the gates are passed, by the engine.
Result<void> AlertPublisher::clearResolved(const FleetSnapshot& snapshot,
                                           const Breakers& breakers) {
  TRY(findings, store_.findings(nullptr));
  TRY(over, breakers.over(findings));
  for (const auto& finding : findings)
    if (finding.facet.facet.str().starts_with(kHealthPrefix) &&
        snapshot.facts.value(finding.facet.subject, finding.facet.facet) == kHealthy)
      over.insert(finding.facet);
  TRY_OK(warnOfSilentAgents(snapshot, findings));
  // What was said and is over is news when it comes back, also where the engine has cleared the
  // finding at the end of the repair.
  std::erase_if(raised_, [&snapshot](const auto& entry) {
    const auto value = snapshot.facts.value(entry.first.subject, entry.first.facet).value_or("");
    return value == kHealthy ||
           (entry.first.facet.str() == kCertificateFacet && value.starts_with(kValid));
  });
  for (const auto& facet : over) {
    raised_.erase(facet);
    if (auto cleared = store_.clearFindings(facet);
        !cleared && cleared.error().code() != ErrorCode::Conflict)
      return cleared;
  }
  return {};
}

/// A warning about each agent that is only watched for its silence, until it calls again. Health's
/// own findings would be over at once: the node counts as well.
Result<void> AlertPublisher::warnOfSilentAgents(const FleetSnapshot& snapshot,
                                                const std::vector<Finding>& findings) {
  std::map<FacetRef, std::string> now;
  for (const auto& [facet, fact] : snapshot.facts.all())
    if (facet.facet == kSystemFacet)
      if (auto text = silenceText(fact); !text.empty())
        now.emplace(FacetRef{facet.subject, kSilenceFacet}, std::move(text));
  for (const auto& finding : findings) {
    if (finding.facet.facet != kSilenceFacet || now.erase(finding.facet) > 0) continue;
    const auto cleared = store_.clearFindings(finding.facet);
    if (cleared) note(finding.facet.subject, "its agent reports again");
    if (!cleared && cleared.error().code() != ErrorCode::Conflict) return cleared;
  }
  for (const auto& [facet, text] : now) {
    const auto raised = store_.addFinding({facet, Severity::Warning, text, "",
                                           "start muster-agent on the node, or look at its network",
                                           clock_.now(), kMonitorSource});
    if (raised) note(facet.subject, text);
    if (!raised && raised.error().code() != ErrorCode::Conflict)
      return raised;  // said when the other controller has let go
  }
  return {};
}

void AlertPublisher::waiting(const std::map<NodeName, std::string>& words) {
  for (const auto& [node, text] : words)
    if (const auto told = waiting_.find(node); told == waiting_.end() || told->second != text)
      note(Subject(node), text);
  waiting_ = words;
}

void AlertPublisher::note(const Subject& subject, std::string text) {
  Event event{0, clock_.now(), EventKind::Note, subject, "", std::move(text)};
  if (auto sequence = store_.addEvent(event); sequence)
    event.sequence = *sequence;
  else
    logWarning("monitor", "an event could not be stored: {}", sequence.error().str());
  if (sink_) sink_(event);
}

}  // namespace muster::monitor
