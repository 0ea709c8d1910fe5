// SPDX-License-Identifier: Apache-2.0
// apply: carries a plan out. Killed anywhere, the same request goes on.
#pragma once

#include "app/site/session.h"
#include "inventory/model/node.h"

#include <optional>
#include <utility>

namespace muster::app {

struct ApplyRequest {
  std::string nodes;                     ///< hostlist; empty: all
  std::optional<lifecycle::Plan> saved;  ///< run exactly this one, instead of `nodes`
};

enum class Outcome {
  Done,      ///< nothing is left to do
  Failed,    ///< an action failed
  Declined,  ///< the operator said no; nothing was done
  WorkLeft   ///< something is left that cannot be done now
};

/// How long each stage took on one subject, in the order of a node's stages.
struct StageTimes {
  lifecycle::Subject subject;
  std::vector<std::pair<std::string, double>> seconds;  ///< by stage; 0: nothing was done
};

struct ApplyResult {
  Outcome outcome = Outcome::Done;
  std::vector<StageTimes> stages;  ///< empty: nothing was done
};

/// Why a saved plan and a choice of nodes are not given together.
Error planExcludesNodes();

/// Without a saved plan: rounds of plan and apply until nothing is left, a round changes nothing,
/// or something fails. Errors: InvalidInput (a saved plan and nodes), Conflict (the saved plan no
/// longer holds, or a rollout has changed the cluster meanwhile)
Result<ApplyResult> applyPlan(const Options& options, ApplyRequest request,
                              ProgressListener& progress);

/// Time by stage from the journal's closed intents since `since`.
Result<std::vector<StageTimes>> stageTimes(const inventory::Cluster& cluster,
                                           lifecycle::Store& store, WallTime since);

}  // namespace muster::app
