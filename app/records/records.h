// SPDX-License-Identifier: Apache-2.0
// events, history and findings: what the store has recorded.
#pragma once

#include "app/site/options.h"
#include "lifecycle/audit/history.h"
#include "lifecycle/model/finding.h"
#include "lifecycle/store/store.h"

#include <string>
#include <vector>

namespace muster::app {

/// The newest events, oldest first. `subject`: a node or @cluster; empty: all.
Result<std::vector<lifecycle::Event>> lastEvents(const Options& options, const std::string& subject,
                                                 std::size_t limit);

/// `what`: a node, @cluster, or the beginning of a plan's hash; empty: all plans.
Result<lifecycle::History> history(const Options& options, const std::string& what,
                                   std::size_t limit);

/// Open findings, newest first. `nodes`: hostlist or @cluster; empty: all.
Result<std::vector<lifecycle::Finding>> openFindings(const Options& options,
                                                     const std::string& nodes);

struct ClearFindingsRequest {
  std::string nodes;  ///< hostlist or @cluster
  std::string facet;
  std::string reason;
};
/// Ends findings; what still holds is found again. Answers those that ended. Errors: InvalidInput
/// (no node is named, no reason), Denied (something else must end them: it is named)
Result<std::vector<lifecycle::Finding>> clearFindings(const Options& options,
                                                      const ClearFindingsRequest& request);

}  // namespace muster::app
