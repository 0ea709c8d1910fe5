// Facts, globs and the words of disruption.
#include "lifecycle/facet.h"

namespace muster::lifecycle {

void FactSet::put(Fact fact) {
  if (fact.value.empty()) return;  // an unknown facet has no fact
  FacetRef ref{fact.subject, fact.facet};
  facts_.insert_or_assign(std::move(ref), std::move(fact));
}

void FactSet::forget(const Subject& subject, const FacetName& facet) { facts_.erase(FacetRef{subject, facet}); }

const Fact* FactSet::find(const Subject& subject, const FacetName& facet) const {
  auto it = facts_.find(FacetRef{subject, facet});
  return it == facts_.end() ? nullptr : &it->second;
}

std::optional<std::string> FactSet::value(const Subject& subject, const FacetName& facet) const {
  const Fact* fact = find(subject, facet);
  return fact ? std::optional(fact->value) : std::nullopt;
}

std::vector<Fact> FactSet::of(const Subject& subject) const {
  std::vector<Fact> out;
  for (auto it = facts_.lower_bound(FacetRef{subject, FacetName()}); it != facts_.end() && it->first.subject == subject; ++it)
    out.push_back(it->second);
  return out;
}

std::string_view toString(Disruption disruption) {
  switch (disruption) {
    case Disruption::None: return "none";
    case Disruption::Drain: return "drain";
    case Disruption::Reset: return "reset";
    case Disruption::Wipe: return "wipe";
  }
  return "wipe";
}

std::optional<Disruption> parseDisruption(std::string_view text) {
  for (auto disruption : {Disruption::None, Disruption::Drain, Disruption::Reset, Disruption::Wipe})
    if (toString(disruption) == text) return disruption;
  return std::nullopt;
}

// Greedy with one point to come back to: linear for usual patterns, |glob| × |value| at worst, no recursion.
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
