// SPDX-License-Identifier: Apache-2.0
// One life of muster over a rack, from what is to what was done.
#pragma once

#include "tests/lifecycle/rack.h"

namespace muster::test {

inline Async<lifecycle::ApplyReport> observePlanApply(lifecycle::Engine& engine,
                                                      lifecycle::Store& store, Rack& rack) {
  CO_TRY(facts, co_await engine.observe({}));
  CO_TRY(policy, policyOf(store, {}));
  CO_TRY(plan, makePlan(rack.cluster, facts, policy, rack.phases()));
  auto report = co_await engine.apply(plan);
  co_return report;
}

}  // namespace muster::test
