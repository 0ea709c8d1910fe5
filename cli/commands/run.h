// SPDX-License-Identifier: Apache-2.0
// run: work that outlives this process.
#pragma once

#include "app/site/site_client.h"
#include "cli/commands/lifecycle.h"
#include "cli/view/console_progress.h"

#include <string>

namespace muster::cli {

struct RunListArgs {
  bool open = false;
  std::size_t limit = 50;
};
int runList(const app::Options& options, const RunListArgs& args);
struct RunArgs {
  std::string id;
};
int runShow(const app::Options& options, const RunArgs& args);
int runFollow(const app::Options& options, const RunArgs& args);
int runCancel(const app::Options& options, const RunArgs& args);
int runPause(const app::Options& options, const RunArgs& args);
int runResume(const app::Options& options, const RunArgs& args);
struct RunApproveArgs {
  std::string id;
  std::string plan;  ///< hash, or its beginning
};
int runApprove(const app::Options& options, const RunApproveArgs& args);
struct RunOverrideArgs {
  std::string id;
  std::string plan;  ///< hash, or its beginning
  std::string reason;
};
int runOverride(const app::Options& options, const RunOverrideArgs& args);
int runAcknowledge(const app::Options& options, const RunArgs& args);

/// apply as a run of whoever serves the site: submits it, and follows it.
int applyByRun(const app::Options& options, app::SiteClient& site, const ApplyArgs& args);
/// Asks the site for a run, and follows it to its end.
int followNewRun(const app::Options& options, app::SiteClient& site, const app::RunRequest& request,
                 ApplyProgress& progress);
/// Shows a run until it ends. Ctrl-C stops the following only, and says how to go on.
int followRun(const app::Options& options, app::SiteClient& site, const std::string& id,
              ApplyProgress& progress, bool asked_here);

}  // namespace muster::cli
