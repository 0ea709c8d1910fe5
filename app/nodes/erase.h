// SPDX-License-Identifier: Apache-2.0
// erase: the disks of one node, for good. Without a confirmation it is only planned.
#pragma once

#include "app/site/session.h"

#include <optional>

namespace muster::app {

struct EraseRequest {
  NodeName node;
  std::vector<std::string> disks;  ///< serials; empty: all that are built in
  std::string reason;              ///< recorded in the journal and in the report
  bool confirmed = false;          ///< else nothing is erased
};

struct EraseResult {
  bool complete = false;              ///< every disk was erased; false too when it was only planned
  std::optional<std::string> report;  ///< JSON, of this erasure
};

/// `progress` hears the plan first. Errors: NotFound (node, its serial), Denied (why it must not be
/// erased), InvalidInput (no reason)
Result<EraseResult> eraseNode(const Options& options, const EraseRequest& request,
                              ProgressListener& progress);

/// Withdraws a request whose erasure has not begun; answers what was withdrawn. Waits for whoever
/// works with the state folder.
Result<std::string> cancelErasure(const Options& options, const NodeName& node);

/// The report of the last erasure (JSON). Errors: NotFound
Result<std::string> erasureReport(const Options& options, const NodeName& node);

}  // namespace muster::app
