// SPDX-License-Identifier: Apache-2.0
// muster firmware: each command prints what a use case of app/ answers, and answers the exit
// status. A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/site/options.h"
#include "cli/commands/node_args.h"
#include "cli/exit_code.h"

#include <string>

namespace muster::cli {

int firmwarePlan(const app::Options& options, const NodesArgs& args);
struct FirmwareSignArgs {
  std::string baseline;
};
int firmwareSign(const app::Options& options, const FirmwareSignArgs& args);
int firmwareRetry(const app::Options& options, const NodesReasonArgs& args);

}  // namespace muster::cli
