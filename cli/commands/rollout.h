// SPDX-License-Identifier: Apache-2.0
// muster rollout: each command prints what a use case of app/ answers, and answers the exit status.
// A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/plans/rollouts.h"
#include "app/site/options.h"
#include "cli/exit_code.h"

#include <string>

namespace muster::cli {

struct RolloutStartArgs {
  lifecycle::RolloutParams asked;           ///< but for what has a member here
  std::string nodes;                        ///< hostlist
  std::filesystem::path change;             ///< a fragment of an inventory
  std::string on_failure, on_inconclusive;  ///< as typed; empty: as the change declares
  bool dry_run = false;
};
int rolloutStart(const app::Options& options, const RolloutStartArgs& args);
struct RolloutStatusArgs {
  std::string id;  ///< empty: the newest
};
int rolloutStatus(const app::Options& options, const RolloutStatusArgs& args);
int rolloutPause(const app::Options& options);
int rolloutAbort(const app::Options& options);
struct RolloutResumeArgs {
  std::string accept_reason;
};
int rolloutResume(const app::Options& options, const RolloutResumeArgs& args);
struct RolloutRollbackArgs {
  std::string id, wipe_reason;
};
int rolloutRollback(const app::Options& options, const RolloutRollbackArgs& args);

}  // namespace muster::cli
