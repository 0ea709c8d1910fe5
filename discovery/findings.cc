// SPDX-License-Identifier: Apache-2.0
#include "discovery/findings.h"

#include "base/json_output.h"

#include <nlohmann/json.hpp>

#include <set>
#include <tuple>

namespace muster::discovery {
namespace {

using lifecycle::FacetRef;
using lifecycle::Finding;
using FindingKey = std::tuple<std::string, std::string, std::string>;  ///< subject, text, evidence

Finding findingOf(const Anomaly& anomaly, WallTime now) {
  const auto subject =
      anomaly.node.str().empty() ? lifecycle::Subject::cluster() : lifecycle::Subject(anomaly.node);
  return {{subject, FacetName(std::string(kDiscoveryFacet))},
          Severity::Warning,
          anomaly.what,
          jsonText(nlohmann::json{{"where", anomaly.where}}),
          anomaly.what_to_do,
          now,
          lifecycle::kDiscoverySource};
}

FindingKey keyOf(const Finding& finding) {
  return {finding.facet.subject.str(), finding.text, finding.evidence};
}

}  // namespace

Result<void> updateFindings(lifecycle::Store& store, const std::vector<Anomaly>& anomalies,
                            WallTime now) {
  std::vector<Finding> wanted;
  std::set<FindingKey> wanted_keys, stored_keys;
  for (const auto& anomaly : anomalies)
    if (auto finding = findingOf(anomaly, now); wanted_keys.insert(keyOf(finding)).second)
      wanted.push_back(std::move(finding));
  TRY(all, store.findings(nullptr));
  std::set<std::string> subjects;
  for (const auto& finding : all)
    if (finding.facet.facet.str() == kDiscoveryFacet)
      stored_keys.insert(keyOf(finding)), subjects.insert(finding.facet.subject.str());
  if (wanted_keys == stored_keys) return {};
  for (const auto& subject : subjects)
    TRY_OK(store.clearFindings(
        {lifecycle::Subject::parse(subject), FacetName(std::string(kDiscoveryFacet))}));
  for (const auto& finding : wanted) TRY_OK(store.addFinding(finding));
  return {};
}

}  // namespace muster::discovery
