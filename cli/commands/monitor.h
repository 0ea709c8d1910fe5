// SPDX-License-Identifier: Apache-2.0
// Nodes after they have joined: the monitor, quarantine, consoles, RMA: each command prints what a
// use case of app/ answers, and answers the exit status. A command's options are one struct: app's
// own request where that says all.
#pragma once

#include "app/site/options.h"
#include "cli/commands/node_args.h"
#include "cli/exit_code.h"

#include <filesystem>
#include <optional>
#include <string>

namespace muster::cli {

struct MonitorArgs {
  bool acknowledge = false;
  bool breakers = false;  ///< shows those that are open
  std::string reason;
};
int monitorNodes(const app::Options& options, const MonitorArgs& args);
int quarantineList(const app::Options& options);
int quarantineAdd(const app::Options& options, const NodesReasonArgs& args);
int quarantineRemove(const app::Options& options, const NodeReasonArgs& args);
struct ConsoleArgs {
  std::string node;
  std::optional<int> boot;
  bool last = false, list = false, raw = false, force = false;
};
int console(const app::Options& options, const ConsoleArgs& args);
struct RmaArgs {
  std::string node;
  std::filesystem::path out;
};
int rma(const app::Options& options, const RmaArgs& args);

}  // namespace muster::cli
