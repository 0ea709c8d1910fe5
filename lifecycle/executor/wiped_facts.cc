// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/executor/wiped_facts.h"

#include <algorithm>
#include <set>

namespace muster::lifecycle {
namespace {

/// Facets of the same subject that are worth nothing once `wiped` is: everything that needs it,
/// directly or through others.
std::vector<FacetName> dependentsOf(const FacetRef& wiped, const std::vector<Goal>& goals) {
  std::set<FacetRef> reached{wiped};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& goal : goals)
      if (!reached.contains(goal.facet) && goal.facet.facet.str() != kPoolFacet &&
          std::any_of(goal.needs.begin(), goal.needs.end(),
                      [&reached](const FacetRef& need) { return reached.contains(need); }))
        grew = reached.insert(goal.facet).second;
  }
  std::vector<FacetName> out;
  for (const auto& facet : reached) out.push_back(facet.facet);
  return out;
}

}  // namespace

Async<void> WipedFacts::forget(FacetRef wiped) {
  const auto& subject = wiped.subject;
  std::vector<Goal> goals;
  for (Phase* phase : services_.phases)
    for (auto& goal : phase->goals(services_.cluster, subject, facts_))
      goals.push_back(std::move(goal));
  std::vector<Goal*> all;
  for (auto& goal : goals) all.push_back(&goal);
  resolveStages(all);
  auto facets = dependentsOf(wiped, goals);
  facets.emplace_back(std::string(kInstalledFacet));
  for (const auto& facet : facets)
    if (const Fact* fact = facts_.find(subject, facet)) forgotten_.push_back(*fact);
  CO_TRY_OK(co_await services_.journal->write<void>(
      [subject, facets](Store& store) { return store.forgetFacts(subject, facets); }));
  for (const auto& facet : facets) facts_.forget(subject, facet);
  co_return Result<void>();
}

Task<void> WipedFacts::restore() {
  std::erase_if(forgotten_, [this](const Fact& fact) {
    return facts_.find(fact.subject, fact.facet) != nullptr;
  });
  if (forgotten_.empty()) co_return;
  if (auto kept = co_await services_.journal->write<void>(
          [facts = forgotten_](Store& store) { return store.putFacts(facts); });
      !kept)
    co_return;
  for (auto& fact : std::exchange(forgotten_, {})) facts_.put(std::move(fact));
}

}  // namespace muster::lifecycle
