// SPDX-License-Identifier: Apache-2.0
#include "app/plans/current_impact.h"

#include "fabric/topology/leaves.h"

namespace muster::app {

Async<PlanImpact> currentImpact(const inventory::Cluster& cluster, lifecycle::Store& store,
                                const lifecycle::FactSet& known, const lifecycle::Plan& plan,
                                PoolObserver observe) {
  auto impact = impactOf(cluster, known, plan, fabric::leavesOf);
  const auto neighbours = uncheckedNeighbours(cluster, plan.policy, impact, fabric::leavesOf);
  if (neighbours.empty()) co_return impact;
  auto facts = known;
  std::vector<lifecycle::Fact> seen;
  for (const auto& node : neighbours) {
    auto places = co_await observe(lifecycle::Subject(node));
    if (!places) co_return fail(std::move(places).error());
    for (auto& fact : *places) {
      facts.put(fact);
      seen.push_back(std::move(fact));
    }
  }
  CO_TRY_OK(store.putFacts(seen));
  co_return impactOf(cluster, facts, plan, fabric::leavesOf);
}

}  // namespace muster::app
