// SPDX-License-Identifier: Apache-2.0
// muster discover: each command prints what a use case of app/ answers, and answers the exit
// status. A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/nodes/discovery.h"
#include "app/site/options.h"
#include "cli/exit_code.h"

#include <string>
#include <vector>

namespace muster::cli {

/// Without --write: the list of what was seen.
int discover(const app::Options& options, const app::AdoptRequest& request);
struct DiscoverScanArgs {
  app::ScanRequest request;
  int port = 443;
};
int discoverScan(const app::Options& options, const DiscoverScanArgs& args);
struct DiscoverWatchArgs {
  std::string interface;
  int seconds = 0;  ///< 0: until interrupted
};
int discoverWatch(const app::Options& options, const DiscoverWatchArgs& args);
int discoverApprove(const app::Options& options, const app::ApproveRequest& request);
struct DiscoverForgetArgs {
  std::vector<std::string> machines;
  bool all = false;
};
int discoverForget(const app::Options& options, const DiscoverForgetArgs& args);

}  // namespace muster::cli
