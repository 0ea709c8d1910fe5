// SPDX-License-Identifier: Apache-2.0
// validate isolate: which node, NIC, switch or pair is bad, by tests between nodes. Killed
// anywhere, the same request goes on.
#pragma once

#include "app/plans/progress_listener.h"
#include "app/site/options.h"
#include "validate/isolate/isolation_run.h"

#include <optional>

namespace muster::app {

struct IsolationRequest {
  std::string nodes;               ///< hostlist; empty: all that may be disturbed
  std::optional<double> min_gbps;  ///< of a healthy pair; nothing: the floor of device and link
  std::string engine = "auto";     ///< of the tests: auto, rdma, nccl, tcp
  std::uint64_t seed = 0;          ///< 0: a new one
  std::string until = {};          ///< "cleared" or "good"; empty: cleared
};

struct IsolationResult {
  validate::isolate::IsolationRun run;
  std::filesystem::path document;  ///< every test
  bool isClear() const { return run.verdict.culprits.empty() && run.verdict.unclear.empty(); }
};

/// Effect: culprits are findings, measurements are stored. Errors: Conflict (a named node must not
/// be disturbed now)
Result<IsolationResult> isolateNodes(const Options& options, const IsolationRequest& request,
                                     ProgressListener& progress);

}  // namespace muster::app
