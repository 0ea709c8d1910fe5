// SPDX-License-Identifier: Apache-2.0
// validate run: gates again, also those that have passed, by the engine: with journal, deadlines,
// drains and the racks' power like in every apply. Killed anywhere, the same request goes on.
#pragma once

#include "app/plans/progress_listener.h"
#include "app/site/options.h"

#include <optional>

namespace muster::app {

struct ValidateRunRequest {
  std::string nodes;               ///< hostlist
  std::vector<std::string> gates;  ///< empty: all of the nodes' profiles
  bool synchronized_load = false;  ///< each rack's nodes begin a gate at one moment
  bool dry_run = false;
  std::optional<int>
      minutes;  ///< after which the process ends; what nodes have begun goes on there
  int time_is_over_status = 1;  ///< its exit status then
};

struct ValidateRunResult {
  bool passed = true;  ///< true too for a dry run
};
/// Errors: NotFound (a gate), Conflict (the nodes are not as declared yet)
Result<ValidateRunResult> runGates(const Options& options, const ValidateRunRequest& request,
                                   ProgressListener& progress);

}  // namespace muster::app
