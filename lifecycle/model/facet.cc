// SPDX-License-Identifier: Apache-2.0
// Facts, globs and the words of disruption.
#include "lifecycle/model/facet.h"

#include <algorithm>

namespace muster::lifecycle {

namespace {

/// Where the facet stands, or would stand, in facts ordered by facet.
template <class Facts>
auto placeOf(Facts& facts, const FacetName& facet) {
  return std::lower_bound(
      facts.begin(), facts.end(), facet,
      [](const Fact& fact, const FacetName& name) { return fact.facet < name; });
}

}  // namespace

void FactSet::put(Fact fact) {
  if (fact.value.empty()) return;  // an unknown facet has no fact
  auto& facts = facts_[fact.subject.str()];
  if (facts.empty() || facts.back().facet < fact.facet) {  // a store reads them in order
    facts.push_back(std::move(fact));
    return;
  }
  auto at = placeOf(facts, fact.facet);
  if (at != facts.end() && at->facet == fact.facet)
    *at = std::move(fact);
  else
    facts.insert(at, std::move(fact));
}

void FactSet::forget(const Subject& subject, const FacetName& facet) {
  auto mine = facts_.find(subject.str());
  if (mine == facts_.end()) return;
  auto at = placeOf(mine->second, facet);
  if (at != mine->second.end() && at->facet == facet) mine->second.erase(at);
  if (mine->second.empty()) facts_.erase(mine);
}

std::span<const Fact> FactSet::view(const Subject& subject) const {
  if (reads_.to) reads_.to->subjects.insert(subject.str());
  auto mine = facts_.find(subject.str());
  return mine == facts_.end() ? std::span<const Fact>() : std::span<const Fact>(mine->second);
}

const Fact* FactSet::find(const Subject& subject, const FacetName& facet) const {
  const auto facts = view(subject);
  const auto at = placeOf(facts, facet);
  return at == facts.end() || at->facet != facet ? nullptr : &*at;
}

std::optional<std::string> FactSet::value(const Subject& subject, const FacetName& facet) const {
  const Fact* fact = find(subject, facet);
  return fact ? std::optional(fact->value) : std::nullopt;
}

std::vector<Fact> FactSet::of(const Subject& subject) const {
  const auto facts = view(subject);
  return {facts.begin(), facts.end()};
}

std::map<FacetRef, Fact> FactSet::all() const {
  if (reads_.to) reads_.to->all = true;
  std::map<FacetRef, Fact> out;
  for (const auto& [subject, facts] : facts_)
    for (const auto& fact : facts) out.emplace(FacetRef{fact.subject, fact.facet}, fact);
  return out;
}

std::size_t FactSet::size() const {
  if (reads_.to) reads_.to->all = true;
  std::size_t out = 0;
  for (const auto& [subject, facts] : facts_) out += facts.size();
  return out;
}

std::string_view toString(Disruption disruption) {
  switch (disruption) {
    case Disruption::None:
      return "none";
    case Disruption::Drain:
      return "drain";
    case Disruption::Reset:
      return "reset";
    case Disruption::Wipe:
      return "wipe";
  }
  return "wipe";
}

std::optional<Disruption> parseDisruption(std::string_view text) {
  for (auto disruption : {Disruption::None, Disruption::Drain, Disruption::Reset, Disruption::Wipe})
    if (toString(disruption) == text) return disruption;
  return std::nullopt;
}

// Greedy with one point to come back to: linear for usual patterns, |glob| × |value| at worst, no
// recursion.
bool matches(std::string_view glob, std::string_view value) {
  std::size_t g = 0, v = 0, star = std::string_view::npos, resume = 0;
  while (v < value.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = v;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == value[v])) {
      ++g;
      ++v;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      v = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace muster::lifecycle
