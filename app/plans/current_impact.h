// SPDX-License-Identifier: Apache-2.0
// The impact of a plan on pools as they are now. Internal to app/.
#pragma once

#include "app/plans/plan_impact.h"
#include "base/async/task.h"
#include "lifecycle/store/store.h"

#include <functional>
#include <vector>

namespace muster::app {

using PoolObserver = std::function<Async<std::vector<lifecycle::Fact>>(lifecycle::Subject)>;

/// A plan over a few nodes has looked at those only, and a limit counts all: the others' places in
/// their pools are read first. `cluster`, `store`, `plan`: borrowed until it ends. Errors: a
/// scheduler that cannot be asked, those of the store
Async<PlanImpact> currentImpact(const inventory::Cluster& cluster, lifecycle::Store& store,
                                const lifecycle::FactSet& known, const lifecycle::Plan& plan,
                                PoolObserver observe);

}  // namespace muster::app
