// SPDX-License-Identifier: Apache-2.0
// pool: what people have said about nodes in their schedulers.
#pragma once

#include "app/site/options.h"
#include "cli/commands/node_args.h"

namespace muster::cli {

int poolHolds(const app::Options& options);
int poolOverride(const app::Options& options, const NodesReasonArgs& args);

}  // namespace muster::cli
