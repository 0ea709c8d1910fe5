// SPDX-License-Identifier: Apache-2.0
// validate isolate and validate run.
#include "app/validation/isolation.h"
#include "app/validation/validate_run.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/run.h"
#include "cli/commands/validate.h"
#include "cli/view/console_progress.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {

namespace {

/// Whoever serves the site tests the nodes, and goes on watching the others.
int isolateByRun(const app::Options& options, app::SiteClient& site,
                 const app::IsolationRequest& request) {
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followNewRun(
      options, site,
      {.kind = lifecycle::RunKind::Isolate,
       .apply = {request.nodes, false, options.command_line, ""},
       .isolate = {request.engine == "auto" ? "" : request.engine, request.min_gbps.value_or(0),
                   request.seed, request.until == "cleared" ? "" : request.until}},
      progress);
}

}  // namespace

int validateIsolate(const app::Options& options, const app::IsolationRequest& request) {
  const auto site = siteForRuns(options);
  if (!site) return report(site.error());
  if (*site) return isolateByRun(options, **site, request);
  ConsoleProgress progress(options.json, ShowEvents::No);
  auto asked = request;
  if (asked.until == "cleared") asked.until.clear();
  const auto done = app::isolateNodes(options, asked, progress);
  if (!done) return report(done.error());
  auto document = toJson(done->run);
  document.erase("rounds_run");
  std::cout << (options.json ? jsonText(document, 2) + "\n"
                             : toText(done->run.begun.site, done->run.verdict));
  std::cerr << "every test is in " << done->document.string() << '\n';
  return done->isClear() ? kOk : kFailed;
}

namespace {

/// Whoever serves the site runs the gates: it may wait there for approvals and windows.
int validateByRun(const app::Options& options, app::SiteClient& site,
                  const app::ValidateRunRequest& request) {
  if (request.minutes)
    return report(Error(ErrorCode::InvalidInput,
                        "--minutes ends this process, and a run goes on without it: leave it out "
                        "and use `muster run pause`, or add --direct; nothing was done"));
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followNewRun(options, site,
                      {.kind = lifecycle::RunKind::Validate,
                       .apply = {request.nodes, false, options.command_line, ""},
                       .validate = {request.gates, request.synchronized_load}},
                      progress);
}

}  // namespace

int validateRun(const app::Options& options, const app::ValidateRunRequest& request) {
  if (request.dry_run && options.server_given)
    return report(Error(ErrorCode::InvalidInput,
                        "--dry-run looks at the nodes from this process: leave out --server, and "
                        "run it on the host of the site"));
  if (!request.dry_run) {
    const auto site = siteForRuns(options);
    if (!site) return report(site.error());
    if (*site) return validateByRun(options, **site, request);
  }
  ConsoleProgress progress(options.json, ShowEvents::Yes);
  const auto done = app::runGates(options, request, progress);
  progress.finish();
  if (!done) return report(done.error());
  return done->passed ? kOk : kFailed;
}

}  // namespace muster::cli
