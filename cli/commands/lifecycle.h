// SPDX-License-Identifier: Apache-2.0
// Plan and apply, and what is asked and ordered beside them: status, findings, events, wipe, erase:
// each command prints what a use case of app/ answers, and answers the exit status. A command's
// options are one struct: app's own request where that says all.
#pragma once

#include "app/nodes/status.h"
#include "app/nodes/wipe.h"
#include "app/site/options.h"
#include "cli/commands/node_args.h"
#include "cli/exit_code.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::cli {

struct PlanArgs {
  std::string nodes;
  std::filesystem::path out;  ///< of the plan as JSON
  bool no_refresh = false;
  bool expand = false;              ///< node by node
  bool detailed_exit_code = false;  ///< kChanges where something would change
};
int plan(const app::Options& options, const PlanArgs& args);
struct ApplyArgs {
  std::string nodes;
  std::filesystem::path plan;  ///< a saved plan
  bool yes = false;            ///< never ask
  bool expand = false;
  std::string after_restart = "continue";  ///< or "pause": of a run whose host has died
};
int apply(const app::Options& options, const ApplyArgs& args);
struct StatusArgs {
  app::NodeFilter filter;
  bool watch = false;
  bool expand = false;  ///< a row a node, however many
};
int status(const app::Options& options, const StatusArgs& args);
struct WhyArgs {
  app::NodeFilter filter;
};
int why(const app::Options& options, const WhyArgs& args);
struct FindingsArgs {
  std::string nodes;  ///< hostlist or @cluster; empty: all
  std::string clear;  ///< a facet whose findings end; empty: they are shown
  std::string reason;
};
int findings(const app::Options& options, const FindingsArgs& args);
struct EventsArgs {
  std::string node;
  std::size_t limit = 200;
};
int events(const app::Options& options, const EventsArgs& args);
struct HistoryArgs {
  std::string what;  ///< a node, @cluster, or the beginning of a plan's hash
  std::size_t limit = 200;
};
int history(const app::Options& options, const HistoryArgs& args);
struct WipeArgs {
  app::WipeRequest request;
  bool list = false;  ///< shows what is permitted
};
int wipe(const app::Options& options, const WipeArgs& args);
struct EraseArgs {
  std::string node, confirm, reason;
  std::vector<std::string> disks;  ///< serials; empty: all that are built in
  std::filesystem::path out;       ///< of the report as JSON
  bool report = false;             ///< show the last report, do nothing
  bool cancel = false;             ///< withdraw what has not begun
};
int erase(const app::Options& options, const EraseArgs& args);

}  // namespace muster::cli
