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
using Told = std::tuple<std::string, std::string, std::string>;  ///< subject, text, evidence

Finding findingOf(const Oddity& odd, WallTime now) {
  const auto subject =
      odd.node.str().empty() ? lifecycle::Subject::cluster() : lifecycle::Subject(odd.node);
  return {{subject, FacetName(std::string(kDiscoveryFacet))},
          Severity::Warning,
          odd.what,
          jsonText(nlohmann::json{{"where", odd.where}}),
          odd.what_to_do,
          now,
          lifecycle::kDiscoverySource};
}

Told told(const Finding& finding) {
  return {finding.facet.subject.str(), finding.text, finding.evidence};
}

}  // namespace

Result<void> keepFindings(lifecycle::Store& store, const std::vector<Oddity>& oddities,
                          WallTime now) {
  std::vector<Finding> wanted;
  std::set<Told> now_told, kept_told;
  for (const auto& odd : oddities)
    if (auto finding = findingOf(odd, now); now_told.insert(told(finding)).second)
      wanted.push_back(std::move(finding));
  TRY(all, store.findings(nullptr));
  std::set<std::string> subjects;
  for (const auto& finding : all)
    if (finding.facet.facet.str() == kDiscoveryFacet)
      kept_told.insert(told(finding)), subjects.insert(finding.facet.subject.str());
  if (now_told == kept_told) return {};
  for (const auto& subject : subjects)
    TRY_OK(store.clearFindings(
        {lifecycle::Subject::parse(subject), FacetName(std::string(kDiscoveryFacet))}));
  for (const auto& finding : wanted) TRY_OK(store.addFinding(finding));
  return {};
}

}  // namespace muster::discovery
