// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/finding_table.h"

#include <algorithm>

namespace muster::lifecycle::sql {

using soci::into;
using soci::use;

Result<void> FindingTable::addFinding(const Finding& finding) {
  return db_.write("storing a finding", [&]() -> Result<void> {
    const long long at = toMillis(finding.at);
    const int severity = static_cast<int>(finding.severity);
    TRY_OK(claims_.fence(finding.facet.subject));
    const auto text = storable(finding.text), evidence = storable(finding.evidence),
               what_to_do = storable(finding.what_to_do);
    db_.sql()
        << "INSERT INTO findings (subject, facet, severity, text, evidence, what_to_do, at_ms, "
           "source) VALUES (:s, :f, :v, :t, :e, :w, :a, :o)",
        use(finding.facet.subject.str()), use(finding.facet.facet.str()), use(severity), use(text),
        use(evidence), use(what_to_do), use(at), use(finding.source);
    return {};
  });
}

Result<std::vector<Finding>> FindingTable::findings(const Subject* subject) {
  return db_.read("reading findings", [&]() -> Result<std::vector<Finding>> {
    std::vector<Finding> out;
    std::string name, facet, text, evidence, what_to_do, source;
    int severity = 0;
    long long at = 0;
    const std::string wanted = subject ? subject->str() : "";
    const std::string filter = subject ? "subject = :s" : ":s = ''";
    db_.each(
        "SELECT subject, facet, severity, text, evidence, what_to_do, at_ms, source FROM "
        "findings WHERE " +
            filter + " ORDER BY sequence DESC",
        std::tie(name, facet, severity, text, evidence, what_to_do, at, source),
        [&] {
          out.push_back(Finding{{Subject::parse(name), FacetName(facet)},
                                static_cast<Severity>(std::clamp(severity, 0, 2)),
                                text,
                                evidence,
                                what_to_do,
                                fromMillis(at),
                                source});
        },
        wanted);
    return out;
  });
}

Result<void> FindingTable::clearFindings(const FacetRef& facet) {
  return db_.write("clearing findings", [&]() -> Result<void> {
    TRY_OK(claims_.fence(facet.subject));
    db_.run("DELETE FROM findings WHERE subject = :s AND facet = :f", facet.subject.str(),
            facet.facet.str());
    return {};
  });
}

Result<void> FindingTable::clearFindingsOf(const FacetRef& facet, const std::string& source) {
  return db_.write("clearing findings", [&]() -> Result<void> {
    TRY_OK(claims_.fence(facet.subject));
    db_.run("DELETE FROM findings WHERE subject = :s AND facet = :f AND source = :o",
            facet.subject.str(), facet.facet.str(), source);
    return {};
  });
}

}  // namespace muster::lifecycle::sql
