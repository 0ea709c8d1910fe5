// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/fact_table.h"

#include <algorithm>

namespace muster::lifecycle::sql {

using soci::into;
using soci::use;

Result<FactSet> FactTable::readFacts(const Subject* wanted) {
  return db_.read("reading facts", [&]() -> Result<FactSet> {
    FactSet out;
    std::string subject, facet, value, source, evidence;
    long long at = 0;
    const std::string name = wanted ? wanted->str() : "";
    db_.each(
        std::string("SELECT subject, facet, value, observed_at_ms, source, evidence FROM facts "
                    "WHERE ") +
            (wanted ? "subject = :s" : ":s = ''"),
        std::tie(subject, facet, value, at, source, evidence),
        [&] {
          out.put(Fact{Subject::parse(subject), FacetName(facet), value, fromMillis(at), source,
                       evidence});
        },
        name);
    return out;
  });
}

Result<FactSet> FactTable::facts() { return readFacts(nullptr); }

Result<std::vector<Fact>> FactTable::factsOf(const Subject& subject) {
  TRY(facts, readFacts(&subject));
  return facts.of(subject);
}

Result<void> FactTable::putFacts(const std::vector<Fact>& facts) {
  for (const auto& fact : facts)
    if (fact.value.empty() || fact.subject.str().empty() || fact.facet.empty())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a fact without subject, facet or value ({}/{}) cannot be stored",
                              fact.subject.str(), fact.facet.str()));
  if (facts.empty()) return {};
  const std::lock_guard lock(db_.mutex());
  std::set<Subject> subjects, mine;
  for (const auto& fact : facts) subjects.insert(fact.subject);
  std::copy_if(subjects.begin(), subjects.end(), std::inserter(mine, mine.end()),
               [this](const auto& s) { return claims_.isHeld(s); });
  return db_.write("storing facts", [&]() -> Result<void> {
    for (const auto& subject : mine) TRY_OK(claims_.fence(subject));
    const auto others =
        mine.size() == subjects.size() ? std::set<std::string>() : claims_.heldByOthers();
    for (const auto& fact : facts) {
      if (others.contains(fact.subject.str())) continue;
      db_.run(
          "INSERT INTO facts (subject, facet, value, observed_at_ms, source, evidence) VALUES (:s, "
          ":f, :v, :a, :o, :e)"
          " ON CONFLICT (subject, facet) DO UPDATE SET value = excluded.value, observed_at_ms = "
          "excluded.observed_at_ms,"
          " source = excluded.source, evidence = excluded.evidence",
          fact.subject.str(), fact.facet.str(), storable(fact.value), toMillis(fact.observed_at),
          storable(fact.source), storable(fact.evidence));
    }
    return {};
  });
}

Result<void> FactTable::forgetFacts(const Subject& subject, const std::vector<FacetName>& facets) {
  return db_.write("forgetting facts", [&]() -> Result<void> {
    TRY_OK(claims_.fence(subject));
    for (const auto& facet : facets)
      db_.run("DELETE FROM facts WHERE subject = :s AND facet = :f", subject.str(), facet.str());
    return {};
  });
}

}  // namespace muster::lifecycle::sql
